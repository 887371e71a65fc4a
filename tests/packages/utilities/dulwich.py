"""Makes a repository of git, commits a file and reads its log."""

from dulwich.repo import Repo

repo = Repo.init("a", mkdir=True)
repo.hooks.clear()  # They are programs.
open("a/x.txt", "w").write("hi")
tree = repo.get_worktree()
tree.stage(["x.txt"])
tree.commit(message=b"Add x", author=b"A <a@b>", committer=b"A <a@b>")
assert [entry.commit.message for entry in repo.get_walker()] == [b"Add x"]
