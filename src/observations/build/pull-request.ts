/** A request to merge, on GitHub, GitLab or a server of one's own; in the path is who owns what. */
const PULL_REQUEST = /^https?:\/\/[^/]+\/(.+?)\/(?:-\/merge_requests|pull|pulls|pullrequest|pull-requests)\/(\d+)/;

/** `owner/name#12`; undefined for an address of another form. */
export function shortenPullRequest(url: string | undefined): string | undefined {
  const [, repository, number] = PULL_REQUEST.exec(url ?? '') ?? [];
  return repository && `${repository}#${number}`;
}
