#!/bin/sh
# push-plugin.sh <tag>: commits what npm run plugin has assembled to the branch `plugin`, from which Claude Code installs it, and
# tags the commit plugin-<tag>. The branch contains nothing else, so that the built program is not in the history of the source.
set -eu
tag=$1
cd "$(dirname "$0")/.."

export GIT_AUTHOR_NAME=release GIT_AUTHOR_EMAIL=release@users.noreply.github.com
export GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
# A separate index, so that the one of the working tree does not change.
index=$(mktemp -d)
trap 'rm -rf "$index"' EXIT
export GIT_INDEX_FILE="$index/index"

git add --force marketplace
tree=$(git write-tree --prefix=marketplace/)
if git fetch --quiet origin refs/heads/plugin 2>/dev/null; then
  commit=$(git commit-tree "$tree" -p FETCH_HEAD -m "$tag")
else
  commit=$(git commit-tree "$tree" -m "$tag")
fi
git push origin "$commit:refs/heads/plugin" "$commit:refs/tags/plugin-$tag"
