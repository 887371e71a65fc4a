"""Makes a repository, by git."""

import git

assert git.Repo.init("a").bare is False
