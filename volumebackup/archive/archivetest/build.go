//go:build linux

package archivetest

import (
	"bytes"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"gotest.tools/v3/assert"
)

// Build fills root with everything that a volume can hold. It needs to be root.
func Build(t testing.TB, root string) {
	t.Helper()
	b := builder{t: t, root: root}
	b.plain()
	b.names()
	b.links()
	b.special()
	b.sparse()
	b.attributes()
	b.times()
}

type builder struct {
	t    testing.TB
	root string
}

func (b *builder) path(name string) string { return b.root + "/" + name }

func (b *builder) ok(err error) {
	b.t.Helper()
	assert.NilError(b.t, err)
}

func (b *builder) write(name string, content []byte) {
	b.t.Helper()
	b.ok(os.WriteFile(b.path(name), content, 0o644))
}

func (b *builder) mkdir(name string) {
	b.t.Helper()
	b.ok(os.MkdirAll(b.path(name), 0o755))
}

func (b *builder) plain() {
	b.write("empty", nil)
	b.write("small", []byte("hello\n"))
	b.write("zeros", make([]byte, 100_000))
	b.write("whole", Random(1, 1<<20))
	b.write("large", Random(2, 1<<20+1))
	b.write("larger", append(Random(3, 3<<20), bytes.Repeat([]byte("text "), 100_000)...))
	b.write("copy", Random(2, 1<<20+1))
	b.mkdir("dir/sub")
	b.write("dir/sub/file", []byte("x"))
	b.write("dir-sorts-after", []byte("y"))
	b.mkdir("empty-dir")
}

func (b *builder) names() {
	b.mkdir("names")
	for _, name := range []string{
		"new\nline", "tab\t", "quote\"", "back\\slash", "\xff\xfe not utf-8", " leading", "trailing ",
		".wh.whiteout", ".wh..wh..opq", "ünïcode", strings.Repeat("n", 255), strings.Repeat("\xe4", 255), "-rf", "*", "a@0", "x.zst",
	} {
		b.write("names/"+name, []byte(name))
	}
	deep := "deep" + strings.Repeat("/d", 100)
	b.mkdir(deep)
	b.write(deep+"/file", []byte("deep down"))
	long := "long"
	b.mkdir(long)
	fd, err := unix.Open(b.path(long), unix.O_DIRECTORY, 0)
	b.ok(err)
	for range 20 { // longer than any path may be
		name := strings.Repeat("l", 255)
		b.ok(unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_DIRECTORY, 0)
		b.ok(err)
		b.ok(unix.Close(fd))
		fd = next
	}
	file, err := unix.Openat(fd, "file", unix.O_CREAT|unix.O_WRONLY, 0o600)
	b.ok(err)
	_, err = unix.Write(file, []byte("far away"))
	b.ok(err)
	b.ok(unix.Close(file))
	b.ok(unix.Close(fd))
}

func (b *builder) links() {
	b.mkdir("links/a")
	b.mkdir("links/b")
	b.write("links/b/first", []byte("linked"))
	b.ok(os.Link(b.path("links/b/first"), b.path("links/a/second")))
	b.ok(os.Link(b.path("links/b/first"), b.path("links/third")))
	b.ok(os.Symlink("target", b.path("links/symlink")))
	b.ok(os.Link(b.path("links/symlink"), b.path("links/symlink-too")))
	b.ok(os.Symlink("/etc/passwd", b.path("links/absolute")))
	b.ok(os.Symlink("../../..", b.path("links/up")))
	b.ok(os.Symlink(strings.Repeat("s", 4000), b.path("links/long")))
	b.ok(os.Symlink("\xff", b.path("links/not-utf-8")))
}

func (b *builder) special() {
	b.mkdir("special")
	b.ok(unix.Mkfifo(b.path("special/fifo"), 0o640))
	b.ok(os.Link(b.path("special/fifo"), b.path("special/fifo-too")))
	b.ok(unix.Mknod(b.path("special/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	b.ok(unix.Mknod(b.path("special/block"), unix.S_IFBLK|0o660, int(unix.Mkdev(7, 300))))
	at, err := net.ListenUnix("unix", &net.UnixAddr{Name: b.path("special/socket"), Net: "unix"})
	b.ok(err)
	at.SetUnlinkOnClose(false)
	b.ok(at.Close())
	b.ok(os.Chmod(b.path("special/socket"), 0o4711))
	b.ok(os.Lchown(b.path("special/fifo"), 12, 34))
}

func (b *builder) sparse() {
	b.mkdir("sparse")
	for name, parts := range map[string][]int64{
		"all-hole": nil, "head": {0}, "middle": {5 << 20}, "tail": {10<<20 - 4096},
		"many": {4096, 3 * 4096, 300_000 / 4096 * 4096, 2 << 20}, "small": {8192},
	} {
		f, err := os.Create(b.path("sparse/" + name))
		b.ok(err)
		size := int64(10 << 20)
		if name == "small" {
			size = 100_000
		}
		b.ok(f.Truncate(size))
		for _, at := range parts {
			_, err := f.WriteAt(Random(uint64(at)+7, 4096), at)
			b.ok(err)
		}
		b.ok(f.Close())
	}
	f, err := os.Create(b.path("sparse/huge"))
	b.ok(err)
	b.ok(f.Truncate(1 << 40))
	_, err = f.WriteAt([]byte("far"), 1<<39)
	b.ok(err)
	b.ok(f.Close())
}

func (b *builder) attributes() {
	b.mkdir("attributes/setgid")
	for name, mode := range map[string]uint32{"setuid": 0o4755, "setgid-file": 0o2755, "sticky": 0o1644, "none": 0, "all": 0o7777} {
		b.write("attributes/"+name, []byte(name))
		b.ok(os.Lchown(b.path("attributes/"+name), 1000, 2000))
		b.ok(unix.Chmod(b.path("attributes/"+name), mode))
	}
	b.ok(os.Lchown(b.path("attributes/setgid"), 3, 4_000_000_000))
	b.ok(unix.Chmod(b.path("attributes/setgid"), 0o3770))
	b.ok(os.Symlink("none", b.path("attributes/owned-symlink")))
	b.ok(os.Lchown(b.path("attributes/owned-symlink"), 65534, 5))
	b.write("attributes/xattrs", []byte("x"))
	b.xattr("attributes/xattrs", "user.one", "1")
	b.xattr("attributes/xattrs", "user.binary", "\x00\xff\n")
	b.xattr("attributes/xattrs", "user.empty", "")
	b.xattr("attributes/xattrs", "user.long", strings.Repeat("v", 2000))
	b.xattr("attributes/xattrs", "trusted.t", "root only")
	b.write("attributes/capable", []byte("c"))
	b.ok(os.Lchown(b.path("attributes/capable"), 7, 8))
	b.xattr("attributes/capable", "security.capability", "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	const acl = "\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x05\x00\x39\x05\x00\x00\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x07\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff"
	b.xattr("attributes/xattrs", "system.posix_acl_access", acl)
	b.mkdir("attributes/acl")
	b.xattr("attributes/acl", "system.posix_acl_default", acl)
	b.xattr("attributes/acl", "user.of-a-directory", "d")
	b.write("attributes/acl/inherits", []byte("i"))
	b.xattr("", "user.of-the-root", "r")
	b.xattr("links/symlink", "trusted.of-a-symlink", "s")
}

func (b *builder) xattr(name, key, value string) {
	b.t.Helper()
	b.ok(unix.Lsetxattr(b.path(name), key, []byte(value), 0))
}

// times comes last, as everything else moves them.
func (b *builder) times() {
	b.mkdir("times/dir")
	for name, sec := range map[string]int64{"before-1970": -86400 * 365, "after-2100": 4_200_000_000, "epoch": 0, "dir": 1_000_000_000} {
		if name != "dir" {
			b.write("times/"+name, []byte(name))
		}
		b.touch("times/"+name, sec, 123_456_789)
	}
	b.touch("links/symlink", 1_111_111_111, 1)
	b.touch("special/fifo", 999_999_999, 999_999_999)
	b.ok(os.Lchown(b.root, 11, 22))
	b.ok(unix.Chmod(b.root, 0o1777))
	b.touch("", 1_234_567_890, 42)
}

func (b *builder) touch(name string, sec, nsec int64) {
	b.t.Helper()
	times := []unix.Timespec{{Sec: sec, Nsec: nsec}, {Sec: sec, Nsec: nsec}}
	b.ok(unix.UtimesNanoAt(unix.AT_FDCWD, b.path(name), times, unix.AT_SYMLINK_NOFOLLOW))
}

// Random returns bytes that depend on nothing but the seed. Half of each page can be
// compressed away, as in many a database.
func Random(seed uint64, n int) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	content := make([]byte, n)
	for at := 0; at < n; at += 4096 {
		_, _ = source.Read(content[at:min(at+2048, n)])
	}
	return content
}

// Dir makes an empty directory for a volume. It is removed with tools that
// know no limit on the length of a path.
func Dir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "volume")
	assert.NilError(t, os.Mkdir(dir, 0o755))
	return dir
}
