// The path is that of the repository: it is named before the first release.
module leasehold.example/go

go 1.19
