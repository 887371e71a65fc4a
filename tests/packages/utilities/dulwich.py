"""Makes a repository of git, commits a file and reads the log."""

from dulwich import porcelain

repo = porcelain.init("a")
open("a/x.txt", "w").write("hi")
porcelain.add(repo, ["a/x.txt"])
porcelain.commit(repo, message=b"Add x", author=b"A <a@b>", committer=b"A <a@b>")
assert [entry.commit.message for entry in repo.get_walker()] == [b"Add x"]
