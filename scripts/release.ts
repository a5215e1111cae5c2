// npm run release -- <tag> <owner>/<repository>: what the release workflow does before it publishes. Checks that the tag belongs to
// this version, names the repository in package.json and the README, and prints the release notes.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findProblems, findReleaseNotes, linkToRelease, nameRepository } from './release-steps.js';

const path = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const read = (name: string) => readFileSync(path(name), 'utf8');

const [tag = '', repository = ''] = process.argv.slice(2);
const { version } = JSON.parse(read('package.json'));
const changelog = read('CHANGELOG.md');
const lock = JSON.parse(read('package-lock.json'));
const problems = findProblems({
  tag,
  repository,
  version,
  lockVersions: [lock.version, lock.packages[''].version],
  changelog,
});
if (problems.length > 0) {
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exit(1);
}
writeFileSync(path('package.json'), nameRepository(read('package.json'), repository));
writeFileSync(path('README.md'), linkToRelease(read('README.md'), repository, tag));
process.stdout.write(`${findReleaseNotes(changelog, version)?.notes}\n`);
