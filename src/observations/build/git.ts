import type { ToolCall } from '../../transcript/turns/turn.js';

/** A request to merge, on GitHub, GitLab or a server of one's own; in the path is who owns what. */
const PULL_REQUEST = /^https?:\/\/[^/]+\/(.+?)\/(?:-\/merge_requests|pull|pulls|pullrequest|pull-requests)\/(\d+)/;

/** What a call did with git, as metadata of its observation. */
export function describeGit({ result }: ToolCall) {
  const { commit, push, pr } = result?.details?.gitOperation ?? {};
  return {
    commit_sha: commit?.sha,
    commit_kind: commit?.kind,
    commit_branch: commit?.branch,
    pushed_branch: push?.branch,
    pr_number: pr?.number,
    pr_url: pr?.url,
    pr_action: pr?.action,
  };
}

/** `owner/name#12`; undefined for an address of another form. */
export function shortenPullRequest(url: string | undefined): string | undefined {
  const [, repository, number] = PULL_REQUEST.exec(url ?? '') ?? [];
  return repository && `${repository}#${number}`;
}
