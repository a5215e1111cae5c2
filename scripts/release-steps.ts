export interface Release {
  readonly tag: string;
  /** `owner/name`, as GitHub has it in GITHUB_REPOSITORY. */
  readonly repository: string;
  /** The version in package.json: the other places follow it. */
  readonly version: string;
  readonly lockVersions: readonly string[];
  readonly changelog: string;
}

/** What the project's pages and package.json have in place of the owner, which only the repository knows. */
export const OWNER = '<owner>';

/** Says why a release cannot be published. */
export function findProblems({ tag, repository, version, lockVersions, changelog }: Release): string[] {
  const { date } = findReleaseNotes(changelog, version) ?? {};
  const checks: [isGood: boolean, problem: string][] = [
    [tag === `v${version}`, `the tag is ${tag || 'missing'}, but package.json has the version ${version}`],
    [/^[\w.-]+\/[\w.-]+$/.test(repository), `expected owner/name of the repository, not ${repository || 'nothing'}`],
    [
      lockVersions.every((each) => each === version),
      `package-lock.json has another version than ${version}: npm install`,
    ],
    [/^\d{4}-\d\d-\d\d$/.test(date ?? ''), `CHANGELOG.md has no section "## [${version}] - <date>"`],
  ];
  return checks.flatMap(([isGood, problem]) => (isGood ? [] : [problem]));
}

/** Returns the section of a version in the changelog, and the date in its heading. */
export function findReleaseNotes(changelog: string, version: string): { date: string; notes: string } | undefined {
  const section = changelog.split(/^(?=## )/m).find((each) => each.startsWith(`## [${version}] - `));
  const [heading = '', ...lines] = section?.split('\n') ?? [];
  return section === undefined ? undefined : { date: heading.split(' - ')[1] ?? '', notes: lines.join('\n').trim() };
}

/** Puts the repository into a file. npm refuses the provenance of a package whose package.json names another one. */
export function nameRepository(text: string, repository: string): string {
  return text.replaceAll(`${OWNER}/cc-langfuse`, repository);
}

/** Makes the README's links absolute, since npm resolves some of them wrongly, and all against the newest source. */
export function linkToRelease(readme: string, repository: string, tag: string): string {
  const page = `https://github.com/${repository}`;
  return readme
    .replaceAll('<this repository>', page)
    .replaceAll('](../../', `](${page}/`)
    .replaceAll(/(!\[[^\]]*\]\()(?!https:)/g, `$1https://raw.githubusercontent.com/${repository}/${tag}/`)
    .replaceAll(/\]\((?!https:|#)/g, `](${page}/blob/${tag}/`);
}
