import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { isTrial, Newcomer } from '../support/newcomer.js';
import { runInTerminal } from '../support/terminal.js';

let newcomer: Newcomer;

beforeEach(async () => {
  newcomer = await Newcomer.arrive();
});

afterEach(async () => expect(await newcomer.leave()).toEqual([]));

describe('in a terminal', () => {
  const inTerminal = (args: readonly string[], typed: { readonly [shown: string]: string }) =>
    runInTerminal(args, newcomer, typed).then(({ exitCode, screen }) => ({
      exitCode,
      screen: stripVTControlCharacters(screen),
    }));

  test('install asks for server and keys, shows no secret, and asks again if they are wrong', async () => {
    const { exitCode, screen } = await inTerminal(['install'], {
      'A number, or the URL of your own [1]: ': 'langfuse\r',
      'an http or https URL, such as https://cloud.langfuse.com': `${newcomer.server.url}\r`,
      'Public key: ': ` ${PUBLIC_KEY} \r`,
      'Secret key (hidden): ': 'sk-lf-mistaken-123456\r',
      [`A number, or the URL of your own [${newcomer.server.url}]: `]: '\r',
      'Public key [': '\r',
      'Secret key (hidden) [sk-lf-…3456]: ': `${SECRET_KEY}\r`,
      'A number, or a name [': '\r',
    });
    expect(screen).toContain('Langfuse refused the keys (401)');
    expect(screen).toContain('Connected to project "Embedded" (organization "Acme").');
    expect(screen).not.toContain('mistaken');
    expect(screen).not.toContain(SECRET_KEY);
    expect(exitCode).toBe(0);
    expect(JSON.parse(newcomer.settings).env).toMatchObject({
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_BASE_URL: newcomer.server.url,
    });
  });

  test('install does not ask for what was given, checks the form of keys, and says at the end that it is done', async () => {
    const { exitCode, screen } = await inTerminal(
      ['install', '--public-key', PUBLIC_KEY, '--base-url', newcomer.server.url],
      {
        'Secret key (hidden): ': 'my-secret\r',
        "Langfuse's keys begin with sk-lf-. Use it anyway? [y/N] ": '\r',
        '\nSecret key (hidden): ': `${SECRET_KEY}\r`,
        'A number, or a name [': '\r',
      },
    );
    expect(exitCode).toBe(0);
    expect(screen).not.toMatch(/Which Langfuse|Public key/);
    expect(screen).toMatch(/\nInstalled\.\r\n$/);
    expect(JSON.parse(newcomer.settings).env).toMatchObject({
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_BASE_URL: newcomer.server.url,
    });
  });

  test('install takes a key of another form if the user says so', async () => {
    const { screen } = await inTerminal(['install', '--base-url', newcomer.server.url], {
      'Public key: ': 'team-a\r',
      "Langfuse's keys begin with pk-lf-. Use it anyway? [y/N] ": 'y\r',
      'Secret key (hidden): ': `${SECRET_KEY}\r`,
      'Which Langfuse?': '\u0003',
    });
    expect(screen).toContain('Langfuse refused the keys (401)');
    expect(newcomer.server.requests.map(isTrial)).toEqual([true, true]);
  });

  test('install offers what the settings have, and a server that does not answer may be used anyway', async () => {
    newcomer.settings = JSON.stringify({
      env: {
        LANGFUSE_PUBLIC_KEY: 'pk-lf-0123456789',
        LANGFUSE_SECRET_KEY: 'sk-lf-0123456789',
        LANGFUSE_HOST: 'http://127.0.0.1:1',
      },
    });
    const { exitCode, screen } = await inTerminal(['install'], {
      '[http://127.0.0.1:1]: ': '\r',
      'Public key [pk-lf-…6789]: ': '\r',
      'Secret key (hidden) [sk-lf-…6789]: ': '\r',
      'Use them anyway? [y/N] ': 'y\r',
      'A number, or a name [': '\r',
      'Let only you read it (chmod 600)? [y/N] ': '\r',
    });
    expect(screen).toContain('127.0.0.1:1 cannot be reached: ECONNREFUSED.');
    expect(exitCode).toBe(0);
    expect(JSON.parse(newcomer.settings).hooks.Stop).toHaveLength(1);
  });

  test.each([
    ['y\r', 0o600],
    ['\r', 0o644],
  ])('install offers to close a file that others can read; the answer is %j', async (answer, mode) => {
    newcomer.settings = '{}';
    chmodSync(newcomer.settingsFile, 0o644);
    const { exitCode, screen } = await inTerminal(['install', '--base-url', newcomer.server.url], {
      'Public key: ': `${PUBLIC_KEY}\r`,
      'Secret key (hidden): ': `${SECRET_KEY}\r`,
      'a name [1]: ': '\r',
      [`Others on this machine can read ${newcomer.settingsFile}, which gets the secret key. Let only you read it (chmod 600)? [y/N] `]:
        answer,
    });
    expect({ exitCode, mode: statSync(newcomer.settingsFile).mode & 0o777 }).toEqual({ exitCode: 0, mode });
    expect(screen.includes(`Fix: chmod 600 ${newcomer.settingsFile}`)).toBe(mode === 0o644);
    // Asked again, it has nothing to offer.
    if (mode === 0o600)
      expect((await inTerminal(['install'], { ...KNOWN, 'a name [1]: ': '\r' })).screen).not.toContain('chmod');
  });

  const KNOWN = { 'the URL of your own [': '\r', 'Public key [': '\r', 'Secret key (hidden) [': '\r' };
  const QUESTION = 'Who is the user of your traces?';

  test.each<[string, string | undefined, { readonly [shown: string]: string }, string | undefined]>([
    ["git's address, which it shows", 'dev@example.com', { 'a name [1]: ': '\r' }, 'git'],
    ['nobody', 'dev@example.com', { 'a name [1]: ': '2\r' }, undefined],
    ['nobody, if git knows no address', undefined, { 'a name [1]: ': '\r' }, undefined],
    ['another name', 'dev@example.com', { 'a name [1]: ': '7\r', '  expected a name': 'dev-7\r' }, 'dev-7'],
  ])('install asks who the user is: %s', async (_, email, typed, user) => {
    await newcomer.install();
    if (email) writeFileSync(join(newcomer.home, '.gitconfig'), `[user]\n\temail = ${email}\n`);
    const { exitCode, screen } = await inTerminal(['install'], { ...KNOWN, ...typed });
    expect({ exitCode, ...JSON.parse(newcomer.settings).env }).toEqual({
      exitCode: 0,
      TRACE_TO_LANGFUSE: 'true',
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_BASE_URL: newcomer.server.url,
      ...(user && { LANGFUSE_USER_ID: user }),
    });
    const git = `  1  git's e-mail address: ${email}, or a repository's own\n  2  nobody\n`;
    expect(screen.replaceAll('\r', '')).toContain(`${QUESTION}\n${email ? git : '  1  nobody\n'}`);
  });

  test('install offers the user that is set, and does not ask for one that is given', async () => {
    await newcomer.install('--user', 'dev-7');
    await inTerminal(['install'], { ...KNOWN, 'a name [dev-7]: ': '\r' });
    expect(JSON.parse(newcomer.settings).env.LANGFUSE_USER_ID).toBe('dev-7');
    const { screen } = await inTerminal(['install', '--user', 'git'], KNOWN);
    expect(screen).not.toContain(QUESTION);
    expect(JSON.parse(newcomer.settings).env.LANGFUSE_USER_ID).toBe('git');
  });

  test('install understands a pasted page of a project, and says where that project has its keys', async () => {
    const { screen } = await inTerminal(['install'], {
      'A number, or the URL of your own [1]: ': `${newcomer.server.url}/project/embedded/traces?peek=1\r`,
      'Public key: ': `${PUBLIC_KEY}\r`,
      'Secret key (hidden): ': `${SECRET_KEY}\r`,
      'a name [1]: ': '\r',
    });
    expect(screen).toContain(`in your project's settings: ${newcomer.server.url}/project/embedded/settings/api-keys`);
    expect(JSON.parse(newcomer.settings).env.LANGFUSE_BASE_URL).toBe(newcomer.server.url);
  });

  test.each(['\u0003', '\u0004'])('install changes nothing if %j answers a question', async (key) => {
    newcomer.settings = '{"env":{"LANGFUSE_SECRET_KEY":"sk-lf-0123456789"}}';
    for (const question of ['the URL of your own [1]: ', 'Public key: ', 'Secret key (hidden) [sk-lf-…6789]: ']) {
      const typed = { 'the URL of your own [1]: ': '\r', 'Public key: ': `${PUBLIC_KEY}\r`, [question]: key };
      const { exitCode, screen } = await inTerminal(['install'], typed);
      expect(exitCode).toBe(130);
      expect(screen).toContain('stopped; nothing was done');
    }
    expect(newcomer.settings).toBe('{"env":{"LANGFUSE_SECRET_KEY":"sk-lf-0123456789"}}');
    expect(newcomer.server.requests).toEqual([]);
  });

  test('uninstall shows the change and asks', async () => {
    await newcomer.install();
    const before = newcomer.settings;
    expect((await inTerminal(['uninstall'], { 'Remove it? [y/N] ': '\r' })).exitCode).toBe(0);
    expect(newcomer.settings).toBe(before);
    const { screen } = await inTerminal(['uninstall'], { 'Remove it? [y/N] ': 'y\r' });
    expect(screen).not.toContain(SECRET_KEY);
    expect(existsSync(newcomer.settingsFile)).toBe(false);
  });
});
