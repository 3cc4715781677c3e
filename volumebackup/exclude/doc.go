// Package exclude decides which entries of a volume stay out of its archive. It is pure: whoever walks the volume
// asks about each entry, in the order of a walk, and hands over what the .gitignore files hold.
//
// # .gitignore
//
// What a .gitignore file means is what git says it means, measured by git check-ignore: the tests compare 500 generated
// trees with it. Libraries for it that we tried (go-git, sabhiram/go-gitignore) say otherwise in about every seventh of
// these trees, so the matcher is our own. It differs from git on purpose in these:
//
//   - Only .gitignore files count: no .git/info/exclude, and nobody's global settings.
//   - Nobody reads git's index. What git tracks although a .gitignore names it is left out.
//   - Whatever a .gitignore says, a directory .git is taken, with all that is in it: half of one is of no use.
//
// # Bounds
//
// Volumes and labels may be anybody's. A .gitignore file is read up to [MaxGitignore] bytes, and those of the
// directories above an entry take [maxHeld] bytes at most; what is beyond that does not count, so more is archived. A
// comparison takes as many steps as the pattern is long times the path, whatever they are.
package exclude
