package worker

// ofThisArchitecture are calls that only it has, or has under this name.
var ofThisArchitecture = []string{"fstatat"}
