import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import {
  findProblems,
  findReleaseNotes,
  linkToRelease,
  nameRepository,
  OWNER,
  type Release,
} from '../scripts/release-steps.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const PACKAGE = JSON.parse(read('package.json'));

describe('package.json', () => {
  test('has everything that npm shows, with the owner to be named by the release', () => {
    const { repository, homepage, bugs, keywords, author, publishConfig } = PACKAGE;
    const page = `https://github.com/${OWNER}/cc-langfuse`;
    expect({ repository, homepage, bugs, publishConfig }).toEqual({
      repository: { type: 'git', url: `git+${page}.git` },
      homepage: `${page}#readme`,
      bugs: { url: `${page}/issues` },
      publishConfig: { access: 'public', provenance: true },
    });
    expect(keywords).toEqual(expect.arrayContaining(['claude-code', 'langfuse']));
    // As in the plugin, whose directory shows it.
    expect(author).toEqual(JSON.parse(read('plugin/plugin.json')).author);
  });

  test('is the only place with the version, apart from what npm and the changelog repeat', () => {
    const { version } = PACKAGE;
    const lock = JSON.parse(read('package-lock.json'));
    expect([lock.version, lock.packages[''].version]).toEqual([version, version]);
    expect(findReleaseNotes(read('CHANGELOG.md'), version)).toBeDefined();
    for (const path of ['plugin/plugin.json', 'plugin/marketplace.json']) expect(read(path)).not.toContain('"version"');
  });
});

describe('a release', () => {
  const changelog =
    '# Changelog\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- This.\n\n## [0.1.0] - unreleased\n\n- That.\n';
  const good: Release = {
    tag: 'v0.2.0',
    repository: 'acme/cc-langfuse',
    version: '0.2.0',
    lockVersions: ['0.2.0', '0.2.0'],
    changelog,
  };

  test('has the section of its version as notes', () => {
    expect(findProblems(good)).toEqual([]);
    expect(findReleaseNotes(changelog, '0.2.0')).toEqual({ date: '2026-12-01', notes: '### Added\n\n- This.' });
    expect(findReleaseNotes(changelog, '0.3.0')).toBeUndefined();
  });

  test.each<[Partial<Release>, string]>([
    [{ tag: 'v0.1.0' }, 'the tag is v0.1.0, but package.json has the version 0.2.0'],
    [{ tag: '' }, 'the tag is missing, but package.json has the version 0.2.0'],
    [{ repository: '' }, 'expected owner/name of the repository, not nothing'],
    [{ repository: `${OWNER}/x` }, 'expected owner/name of the repository, not <owner>/x'],
    [{ lockVersions: ['0.2.0', '0.1.0'] }, 'package-lock.json has another version than 0.2.0: npm install'],
    [{ tag: 'v0.1.0', version: '0.1.0', lockVersions: [] }, 'CHANGELOG.md has no section "## [0.1.0] - <date>"'],
  ])('with %j is not published', (change, problem) => {
    expect(findProblems({ ...good, ...change })).toEqual([problem]);
  });

  test('names its repository wherever package.json names one', () => {
    const { repository, homepage, bugs, ...others } = JSON.parse(nameRepository(read('package.json'), 'acme/exporter'));
    expect({ repository, homepage, bugs }).toEqual({
      repository: { type: 'git', url: 'git+https://github.com/acme/exporter.git' },
      homepage: 'https://github.com/acme/exporter#readme',
      bugs: { url: 'https://github.com/acme/exporter/issues' },
    });
    const { repository: _, homepage: __, bugs: ___, ...same } = PACKAGE;
    expect(others).toEqual(same);
  });
});

describe('the README on npm', () => {
  const readme = linkToRelease(read('README.md'), 'acme/exporter', 'v1.2.3');
  const links = Array.from(readme.matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link);

  test('has no link that only GitHub understands', () => {
    expect(links.filter((link) => !/^(?:https:|#)/.test(link))).toEqual([]);
    expect(readme).not.toContain('<this repository>');
  });

  test('has the pages and the picture of its own version', () => {
    expect(links).toEqual(
      expect.arrayContaining([
        'https://github.com/acme/exporter/blob/v1.2.3/docs/install.md#uninstalling',
        'https://raw.githubusercontent.com/acme/exporter/v1.2.3/docs/preview.png',
        'https://github.com/acme/exporter/actions/workflows/ci.yml/badge.svg',
        'https://github.com/acme/exporter/actions/workflows/ci.yml',
      ]),
    );
  });
});

interface Workflow {
  readonly on: { readonly [event: string]: unknown };
  readonly permissions: object;
  readonly jobs: { readonly [job: string]: Job };
}

interface Job {
  readonly uses?: string;
  readonly needs?: string;
  readonly permissions?: object;
  readonly strategy?: { readonly matrix: { readonly node: readonly number[]; readonly os?: readonly string[] } };
  readonly steps?: readonly Step[];
}

interface Step {
  readonly uses?: string;
  readonly with?: { readonly [input: string]: unknown };
  readonly run?: string;
}

const WORKFLOWS = readdirSync(join(ROOT, '.github/workflows'));
const workflow = (name: string): Workflow => parse(read(`.github/workflows/${name}`));

describe('the workflows', () => {
  test.each(WORKFLOWS)('%s starts only scripts and workflows that exist', (name) => {
    const jobs = Object.values(workflow(name).jobs);
    const commands = jobs.flatMap(({ steps = [] }) => steps.flatMap(({ run = '' }) => run.split('\n')));
    const scripts = commands.flatMap((line) => /npm run (?:-s )?([\w:]+)/.exec(line)?.[1] ?? []);
    expect(scripts.filter((script) => !(script in PACKAGE.scripts))).toEqual([]);
    const paths = commands.flatMap((line) => /(?:^|\s)((?:scripts|test|\.ci)\/\S+)/.exec(line)?.[1] ?? []);
    const called = jobs.flatMap(({ uses }) => (uses?.startsWith('./') ? [uses] : []));
    expect(scripts.length + paths.length).toBeGreaterThan(0);
    expect([...paths, ...called].filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    for (const { uses, steps = [] } of jobs) expect(uses === undefined).toBe(steps.length > 0);
  });

  test('run the tests with every supported Node on Linux, macOS and Windows', () => {
    const { jobs } = workflow('ci.yml');
    const matrices = Object.values(jobs).flatMap(({ strategy }) => strategy?.matrix ?? []);
    expect(matrices.map(({ node }) => node)).toEqual([
      [20, 22, 24],
      [20, 22, 24],
    ]);
    expect(matrices.flatMap(({ os = [] }) => os)).toEqual(['macos-latest', 'windows-latest']);
    expect(PACKAGE.engines.node).toMatch(/^>=20\./);
  });

  test('publish only a tag whose tests have passed', () => {
    const { on, jobs } = workflow('release.yml');
    expect(on).toEqual({ push: { tags: ['v*'] } });
    expect(jobs.tests?.uses).toBe('./.github/workflows/ci.yml');
    const needs = Object.entries(jobs).map(([job, { needs: needed }]) => [job, needed]);
    expect(Object.fromEntries(needs)).toEqual({ tests: undefined, build: 'tests', npm: 'build', github: 'npm' });
    expect(Object.keys(workflow('ci.yml').on)).toContain('workflow_call');
  });

  test.each(WORKFLOWS)('%s names each action by its commit, with the version as a comment', (name) => {
    const used = Array.from(read(`.github/workflows/${name}`).matchAll(/\buses: (.*)$/gm), ([, action = '']) => action);
    expect(used.length).toBeGreaterThan(0);
    const isPinned = /^(?:\.\/\.github\/|[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$)/;
    expect(used.filter((action) => !isPinned.test(action))).toEqual([]);
    // A commit has one version, wherever it is used.
    const versions = new Set(used.map((action) => action.replace(/ .*/, '')));
    expect(new Set(used).size).toBe(versions.size);
  });

  test('give each job only what it needs, and none a secret', () => {
    const permissions = (name: string) => {
      const { permissions: ofAll, jobs } = workflow(name);
      return { ofAll, ...Object.fromEntries(Object.entries(jobs).map(([job, each]) => [job, each.permissions])) };
    };
    expect(permissions('ci.yml')).toEqual({ ofAll: { contents: 'read' } });
    expect(permissions('release.yml')).toEqual({
      ofAll: {},
      tests: { contents: 'read' },
      build: { contents: 'read' },
      npm: { 'id-token': 'write' },
      github: { contents: 'write' },
    });
    expect(WORKFLOWS.filter((name) => /\bsecrets\b/.test(read(`.github/workflows/${name}`)))).toEqual([]);
  });

  test('run no code of other packages where they may publish, and no install script anywhere', () => {
    const { npm, github } = workflow('release.yml').jobs;
    const commands = (job: Job | undefined) => (job?.steps ?? []).flatMap(({ run = '' }) => run.split('\n'));
    const mayPublish = [...commands(npm), ...commands(github)];
    expect(mayPublish.filter((line) => /\bnpm (?:ci|install|run|test)\b|\bnpx\b/.test(line))).toEqual([]);
    expect(mayPublish.filter((line) => line.includes('npm publish'))).toEqual([
      '  npm publish --ignore-scripts --provenance ./release/cc-langfuse-*.tgz',
    ]);
    // npm takes the workflow's identity since 11.5.1, which Node 24 has.
    const node = npm?.steps?.find(({ uses }) => uses?.startsWith('actions/setup-node@'));
    expect(node?.with?.['node-version']).toBeGreaterThanOrEqual(24);
    const all = [...WORKFLOWS.flatMap((name) => Object.values(workflow(name).jobs)).flatMap(commands)];
    const installs = all.filter((line) => /\bnpm ci\b/.test(line));
    expect(installs.length).toBeGreaterThan(0);
    expect(installs.filter((line) => !line.includes('--ignore-scripts'))).toEqual([]);
    expect(read('scripts/setup.mjs')).toContain("[...args, '--ignore-scripts', ");
  });

  test('leave the token for the repository to the one job that pushes', () => {
    const checkouts = WORKFLOWS.flatMap((name) =>
      Object.entries(workflow(name).jobs).flatMap(([job, { steps = [] }]) =>
        steps
          .filter(({ uses }) => uses?.startsWith('actions/checkout@'))
          .map((step) => ({ job, keeps: step.with?.['persist-credentials'] !== false })),
      ),
    );
    expect(checkouts.filter(({ keeps }) => keeps)).toEqual([{ job: 'github', keeps: true }]);
    expect(checkouts.length).toBeGreaterThan(1);
  });

  test('publish with each release the package as npm has it, and its bill of materials', () => {
    const steps = workflow('release.yml').jobs.github?.steps ?? [];
    const release = steps.find(({ run }) => run?.includes('gh release create'))?.run ?? '';
    expect(release).toContain('release/cc-langfuse-*.tgz release/sbom.cdx.json');
  });

  // Windows has no such mode; git keeps it.
  test.skipIf(process.platform === 'win32').each(['.ci/run', 'scripts/push-plugin.sh'])('can execute %s', (path) => {
    expect(statSync(join(ROOT, path)).mode & 0o111).toBe(0o111);
  });
});

describe('on GitHub', () => {
  test('a bug report asks for what doctor says', () => {
    const { name, description, body } = parse(read('.github/ISSUE_TEMPLATE/bug.yml'));
    expect([name, description].every((text) => typeof text === 'string')).toBe(true);
    const doctor = body.find(({ id }: { id?: string }) => id === 'doctor');
    expect(doctor).toMatchObject({ type: 'textarea', validations: { required: true } });
    expect(doctor.attributes.label).toContain('cc-langfuse doctor');
  });

  test.each(['bug.yml', 'feature.yml'])('every question of %s has a label, and ids are unique', (template) => {
    const { body } = parse(read(`.github/ISSUE_TEMPLATE/${template}`));
    const questions = body.filter(({ type }: { type: string }) => type !== 'markdown');
    for (const { attributes } of questions) expect(attributes.label).toEqual(expect.any(String));
    const ids = questions.map(({ id }: { id: string }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('Dependabot looks after the packages and the actions', () => {
    const { version, updates } = parse(read('.github/dependabot.yml'));
    expect(version).toBe(2);
    const ecosystems = updates.map((update: { 'package-ecosystem': string }) => update['package-ecosystem']);
    expect(ecosystems).toEqual(['npm', 'github-actions']);
  });

  test('the badges of the README say what package.json says', () => {
    const [node = '', license = ''] = Array.from(
      read('README.md').matchAll(/img\.shields\.io\/badge\/(\S+)-blue/g),
      ([, badge = '']) => decodeURIComponent(badge).replaceAll('--', '\0').replaceAll('-', ' ').replaceAll('\0', '-'),
    );
    expect([node, license]).toEqual([`node ${PACKAGE.engines.node}`, `license ${PACKAGE.license}`]);
  });
});
