import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findEmail, readGitIdentity } from '../../src/git/identity.js';
import { originName, readRepositoryConfig } from '../../src/git/repository.js';

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'cc-langfuse-git-'));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

function write(path: string, text: string): string {
  const file = join(home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

function folder(path: string): string {
  mkdirSync(join(home, path), { recursive: true });
  return join(home, path);
}

const origin = (path: string) => readRepositoryConfig(join(home, path))?.get('remote.origin.url');
const remote = (url: string) => `[core]\n\tbare = false\n[remote "origin"]\n\turl = ${url}\n\tfetch = +refs/*:refs/*\n`;

describe('readRepositoryConfig', () => {
  test('reads the nearest repository above the folder', () => {
    write('repo/.git/config', remote('https://example.com/a.git'));
    write('repo/inner/.git/config', remote('https://example.com/b.git'));
    folder('repo/inner/src/deep');
    folder('repo/src');
    expect(origin('repo')).toBe('https://example.com/a.git');
    expect(origin('repo/src')).toBe('https://example.com/a.git');
    expect(origin('repo/inner/src/deep')).toBe('https://example.com/b.git');
  });

  test('reads the shared repository of a worktree, and the own one of a submodule', () => {
    write('repo/.git/config', remote('https://example.com/a.git'));
    write('repo/.git/worktrees/w/commondir', '../..\n');
    write('elsewhere/.git', `gitdir: ${join(home, 'repo/.git/worktrees/w')}\n`);
    write('repo/.git/modules/m/config', remote('https://example.com/m.git'));
    write('repo/m/.git', 'gitdir: ../.git/modules/m\n');
    expect(origin('elsewhere')).toBe('https://example.com/a.git');
    expect(origin('repo/m')).toBe('https://example.com/m.git');
  });

  test('returns undefined if the folder is gone, relative or a file, even with a repository above', () => {
    write('.git/config', remote('https://example.com/dotfiles.git'));
    expect(origin('gone/project')).toBeUndefined();
    expect(readRepositoryConfig('.')).toBeUndefined();
    expect(readRepositoryConfig(write('file', ''))).toBeUndefined();
    expect(readRepositoryConfig('\0')).toBeUndefined();
  });

  test.each([
    ['a file without a path', '.git', 'nothing\n'],
    ['a file with the path of a folder that is gone', '.git', 'gitdir: /gone/.git\n'],
    ['a folder with an unreadable configuration', '.git/config', '\0\u{1F600}[[[ = "\\\n[remote "origin"\nurl\n= x'],
    [
      'a folder with a huge configuration',
      '.git/config',
      `${remote('https://example.com/a.git')}#${'x'.repeat(1 << 20)}`,
    ],
  ])('finds no remote if .git is %s', (_, path, text) => {
    write(join('repo', path), text);
    expect(origin('repo')).toBeUndefined();
  });

  test('reads comments, quotes, escapes, cases and repeated names as git does', () => {
    write(
      'repo/.git/config',
      [
        '; a comment',
        '[Remote "origin"] URL = https://example.com/first.git # another',
        '[remote "Origin"]',
        '  url = https://example.com/other.git',
        '[remote "origin"]',
        '  pushurl = https://example.com/push.git',
        '  url = "https://example.com/\\',
        'a;b#c\\"d.git" ; the last',
        '[user]',
        '\temail = me@example.com',
        '\tname',
      ].join('\r\n'),
    );
    expect(origin('repo')).toBe('https://example.com/a;b#c"d.git');
    expect(readRepositoryConfig(join(home, 'repo'))?.get('user.email')).toBe('me@example.com');
  });
});

describe('originName', () => {
  const nameOf = (url: string) => originName(new Map([['remote.origin.url', url]]));

  test.each([
    'https://github.com/owner/name.git',
    'https://github.com/owner/name/',
    'https://me:ghp_secret@GitHub.com/owner/name.git',
    'https://x-access-token:secret@github.com:8443/owner/name?token=secret#secret',
    'git@github.com:owner/name.git',
    'github.com:/owner/name',
    'ssh://git@github.com:22/owner/name.git',
    'git+ssh://git@GITHUB.com/owner/name',
  ])('reduces %s to host, owner and name', (url) => {
    expect(nameOf(url)).toBe('github.com/owner/name');
  });

  test('keeps several levels of owners', () => {
    expect(nameOf('git@gitlab.example.com:group/team/name.git')).toBe('gitlab.example.com/group/team/name');
  });

  test.each([
    '/srv/git/name.git',
    '../name',
    'file:///srv/name.git',
    'C:\\work\\name',
    'C:/work',
    '',
    'https://',
    '://x',
  ])('returns undefined for %j', (url) => {
    expect(nameOf(url)).toBeUndefined();
  });
});

describe('findEmail', () => {
  const email = (env: NodeJS.ProcessEnv = {}, path = 'repo') =>
    findEmail(readGitIdentity({ HOME: home, ...env }), readRepositoryConfig(join(home, path)));
  const user = (address: string) => `[user]\n\temail = ${address}\n`;

  test("prefers the repository's address to the user's own", () => {
    write('repo/.git/config', user('repo@x'));
    write('.gitconfig', user('home@x'));
    write('.config/git/config', user('config@x'));
    write('xdg/git/config', user('xdg@x'));
    expect(email()).toBe('repo@x');
    expect(email({}, 'gone')).toBe('home@x');
    rmSync(join(home, '.gitconfig'));
    expect(email({}, 'gone')).toBe('config@x');
    expect(email({ XDG_CONFIG_HOME: join(home, 'xdg') }, 'gone')).toBe('xdg@x');
  });

  test('prefers what the environment defines', () => {
    write('repo/.git/config', user('repo@x'));
    write('.gitconfig', user('home@x'));
    const other = write('other', user('other@x'));
    expect(email({ GIT_AUTHOR_EMAIL: 'author@x' })).toBe('author@x');
    expect(email({ GIT_CONFIG_GLOBAL: other }, 'gone')).toBe('other@x');
    expect(email({ GIT_CONFIG_GLOBAL: '' }, 'gone')).toBeUndefined();
  });

  test('returns undefined if git has no address', () => {
    write('repo/.git/config', '[user]\n\tname = me\n\temail =\n');
    mkdirSync(join(home, '.gitconfig'));
    expect(email()).toBeUndefined();
  });
});
