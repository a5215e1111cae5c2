import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { ClaudeSession, writeFolderSettings } from '../support/claude-session.js';
import { type Environment, LAUNCHER, POLL, run, Workplace } from '../support/program.js';
import { startHook } from '../support/start-hook.js';

let workplace: Workplace;
let session: ClaudeSession;
let project: string;
let proxied: string[];
let proxy: Server;
const servers: Server[] = [];

beforeEach(async () => {
  workplace = await Workplace.open();
  project = join(workplace.home, 'work');
  mkdirSync(project);
  const id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
  session = new ClaudeSession(id, workplace.transcriptOf(id), project);
  session.addTurn();
  proxied = [];
  proxy = createServer((incoming, outgoing) => {
    proxied.push(`${incoming.method} ${incoming.url}`);
    incoming.resume();
    outgoing.end('{}');
  });
  proxy.on('connect', ({ url }, socket) => {
    proxied.push(`CONNECT ${url}`);
    socket.destroy();
  });
  await listen(proxy);
});

afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  await workplace.close();
});

async function listen(server: Server): Promise<string> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return address(server);
}

const address = (server: Server) => `127.0.0.1:${(server.address() as AddressInfo).port}`;
const turns = () => workplace.server.roots.map(({ name }) => name);
const path = (name: string) => join(workplace.home, name);

/** Starts the launcher as Claude Code does, with what the settings of all files make of the shell's variables. */
function launch(env: Environment, event: 'Stop' | 'SessionEnd' = 'Stop') {
  const passed = { PATH: process.env.PATH, ...workplace.env, CLAUDE_PROJECT_DIR: project, ...env };
  const launcher = ['/bin/sh', LAUNCHER, event, process.execPath];
  return startHook(launcher, session.payload(event), { env: passed, cwd: project });
}

const SILENT = { exitCode: 0, signal: null, output: '' };
const IN_FRONT = { CC_LANGFUSE_WAIT: '1' };
const TERMINAL = { CLAUDE_CODE_ENTRYPOINT: 'cli' };

/** A script that leaves a file behind when Node runs it. */
function writeMarker(name: string): { readonly options: string; readonly isThere: () => boolean } {
  const script = path(`${name}.cjs`);
  writeFileSync(script, `require('node:fs').writeFileSync(${JSON.stringify(path(name))}, '');`);
  return { options: `--require=${script}`, isThere: () => existsSync(path(name)) };
}

describe('a proxy', () => {
  const START = [
    ['the launcher', (env: Environment) => launch({ ...env, ...IN_FRONT })],
    [
      'Node alone',
      (env: Environment) =>
        run(
          ['hook'],
          { ...workplace.env, CLAUDE_PROJECT_DIR: project, ...env },
          JSON.stringify(session.payload('Stop')),
          {
            cwd: project,
          },
        ),
    ],
  ] as const;

  describe.each(START)('through %s', (_, start) => {
    test.each(['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy'])(
      'that only the project names sees no request: %s',
      async (name) => {
        const theirs = { [name]: `http://${address(proxy)}` };
        writeFolderSettings(project, theirs, name === 'ALL_PROXY' ? 'settings.local.json' : 'settings.json');
        await start(theirs);
        expect({ turns: turns(), proxied }).toEqual({ turns: ['Turn 1'], proxied: [] });
        expect(workplace.log.map(({ msg }) => msg)).toContainEqual(
          expect.stringMatching(`^${name}: is ignored, because`),
        );
      },
    );

    test('that the user names is used, whether or not the project names another', async () => {
      const mine = { HTTP_PROXY: `http://${address(proxy)}` };
      const theirs = { HTTP_PROXY: 'http://127.0.0.1:1' };
      writeFolderSettings(workplace.home, mine);
      writeFolderSettings(project, theirs);
      await start({ LANGFUSE_BASE_URL: 'http://langfuse.test', ...theirs });
      expect(proxied).toContainEqual(expect.stringMatching(/^POST http:\/\/langfuse\.test\//));
    });

    test('that the shell names is used beside other settings of the project', async () => {
      writeFolderSettings(project, { LANGFUSE_TAGS: 'theirs' });
      const env = { HTTP_PROXY: `http://${address(proxy)}`, LANGFUSE_TAGS: 'theirs' };
      await start({ LANGFUSE_BASE_URL: 'http://langfuse.test', ...env });
      expect(proxied).toContainEqual(expect.stringMatching(/^POST http:\/\/langfuse\.test\//));
    });
  });

  test('sees nothing of https either, and no other certificate is trusted (needs openssl)', async ({ skip }) => {
    const certificate = createCertificate(workplace.home);
    if (!certificate) return skip();
    const keys: unknown[] = [];
    const [key, cert] = [readFileSync(certificate.key), readFileSync(certificate.cert)];
    const server = createTlsServer({ key, cert }, (incoming, outgoing) => {
      keys.push(incoming.headers.authorization);
      incoming.resume();
      outgoing.end('{}');
    });
    const url = `https://${await listen(server)}`;
    const start = async (theirs: Environment, env: Environment = {}, how = IN_FRONT as Environment) => {
      writeFolderSettings(project, theirs);
      await launch({ LANGFUSE_BASE_URL: url, CLAUDE_CODE_CERT_STORE: 'bundled', ...env, ...theirs, ...how });
    };
    const theirs = { NODE_TLS_REJECT_UNAUTHORIZED: '0', HTTPS_PROXY: `http://${address(proxy)}` };
    await start(theirs);
    await start({ NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    await start({ NODE_EXTRA_CA_CERTS: certificate.cert });
    await start({ SSL_CERT_FILE: certificate.cert, NODE_OPTIONS: '--use-openssl-ca' });
    await start({ CLAUDE_CODE_CERT_STORE: 'bundled,system', SSL_CERT_FILE: certificate.cert });
    writeFolderSettings(project, { NODE_EXTRA_CA_CERTS: certificate.cert });
    // Without the launcher, Node has read the file before the program can look.
    await run(
      ['hook'],
      { ...workplace.env, LANGFUSE_BASE_URL: url, CLAUDE_PROJECT_DIR: project, NODE_EXTRA_CA_CERTS: certificate.cert },
      JSON.stringify(session.payload('Stop')),
      { cwd: project },
    );
    expect({ keys, proxied }).toEqual({ keys: [], proxied: [] });

    // What the user has works, from the shell and from the user's file, also if the project has another.
    await start({}, { NODE_EXTRA_CA_CERTS: certificate.cert });
    expect(keys).toEqual([expect.stringMatching(/^Basic /)]);
    session.addTurn();
    await start({ LANGFUSE_TAGS: 'a\u0020b' }, { NODE_OPTIONS: '--use-openssl-ca', SSL_CERT_FILE: certificate.cert });
    expect(keys).toHaveLength(2);
    session.addTurn();
    writeFolderSettings(workplace.home, { NODE_EXTRA_CA_CERTS: certificate.cert });
    await start({ NODE_EXTRA_CA_CERTS: '/theirs.pem' });
    expect(keys).toHaveLength(3);
  });
});

describe('a command', () => {
  const backfill = (env: Environment) => {
    workplace.letIdle();
    mkdirSync(join(project, 'deep'), { recursive: true });
    return run(['backfill', '--all', '--yes'], { ...workplace.env, ...env }, '', { cwd: join(project, 'deep') });
  };

  test('in the shell of Claude Code, which passes on what the project sets, uses nothing of it', async () => {
    const theirs = { HTTP_PROXY: `http://${address(proxy)}`, CC_LANGFUSE_HEADERS: 'x-of=theirs' };
    writeFolderSettings(project, theirs);
    await backfill({ CLAUDECODE: '1', ...theirs });
    expect({ turns: turns(), proxied }).toEqual({ turns: ['Turn 1'], proxied: [] });
    expect(workplace.server.requests.map(({ headers }) => headers['x-of'])).not.toContain('theirs');
  });

  test('in the shell of a person uses what that shell has, though the project names it', async () => {
    const mine = { HTTP_PROXY: `http://${address(proxy)}` };
    writeFolderSettings(project, { HTTP_PROXY: 'http://127.0.0.1:1' });
    await backfill({ LANGFUSE_BASE_URL: 'http://langfuse.test', ...mine });
    expect(proxied).toContainEqual(expect.stringContaining('http://langfuse.test/'));
  });
});

describe('NODE_OPTIONS', () => {
  const start = (env: Environment) => launch({ ...env, ...TERMINAL });

  test.each([
    ['in its settings', (options: string) => JSON.stringify({ env: { NODE_OPTIONS: options } })],
    ['with escapes', (options: string) => `{"env": {"NODE_OPTION\\u0053": ${JSON.stringify(options)}}}`],
    ['over several lines', (options: string) => JSON.stringify({ env: { A: '', NODE_OPTIONS: options } }, null, 2)],
  ])('of a project runs no code in a hook: %s', async (_, write) => {
    const marker = writeMarker('theirs');
    mkdirSync(join(project, '.claude'));
    writeFileSync(join(project, '.claude', 'settings.json'), write(marker.options));
    expect(await start({ NODE_OPTIONS: marker.options })).toEqual(SILENT);
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
    session.addTurn();
    expect(await launch({ NODE_OPTIONS: marker.options, ...IN_FRONT })).toEqual(SILENT);
    await expect.poll(turns, POLL).toEqual(['Turn 1', 'Turn 2']);
    expect(marker.isThere()).toBe(false);
  });

  test('of a project are not taken for the user’s under the name that the launcher gives them', async () => {
    const marker = writeMarker('theirs');
    const theirs = { HOOK_SH_HELD_NODE_OPTIONS: marker.options };
    writeFolderSettings(project, theirs);
    await start(theirs);
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
    expect(marker.isThere()).toBe(false);
  });

  test('of the user work, also if the project has others', async () => {
    const [mine, theirs] = [writeMarker('mine'), writeMarker('theirs')];
    writeFolderSettings(workplace.home, { NODE_OPTIONS: mine.options });
    writeFolderSettings(project, { NODE_OPTIONS: theirs.options });
    await start({ NODE_OPTIONS: theirs.options });
    await expect.poll(turns, POLL).toEqual(['Turn 1']);
    expect([mine, theirs].map(({ isThere }) => isThere())).toEqual([true, false]);
  });

  test.each([{}, { LANGFUSE_TAGS: 'a' }, { LANGFUSE_TAGS: 'NODE_OPTIONS' }])(
    'of the shell work if the project has none, but %j',
    async (theirs) => {
      const mine = writeMarker('mine');
      writeFolderSettings(project, theirs);
      await start({ ...theirs, NODE_OPTIONS: mine.options });
      await expect.poll(turns, POLL).toEqual(['Turn 1']);
      expect(mine.isThere()).toBe(true);
    },
  );
});

test('a run that the user does not trace is not traced because the project says so under the same name', async () => {
  const theirs = { CC_TRACE_TO_LANGFUSE: 'true', TRACE_TO_LANGFUSE: 'true' };
  writeFolderSettings(project, theirs);
  await launch({ ...theirs, ...IN_FRONT });
  await launch({ ...theirs }, 'SessionEnd');
  expect(workplace.server.requests).toEqual([]);
});

test('no program that a PATH of the project names is run', async () => {
  const folder = join(project, 'bin');
  mkdirSync(folder);
  for (const name of ['cat', 'wc', 'setsid', 'sleep', 'mkdir', 'node', 'git']) {
    writeFileSync(join(folder, name), `#!/bin/sh\n: > "${path('run')}"\n`);
    chmodSync(join(folder, name), 0o755);
  }
  const theirs = { PATH: `${folder}:${process.env.PATH}` };
  writeFolderSettings(project, theirs);
  expect(await launch({ ...theirs, ...TERMINAL })).toEqual(SILENT);
  await expect.poll(turns, POLL).toEqual(['Turn 1']);
  session.addTurn();
  expect(await launch({ ...theirs, ...IN_FRONT })).toEqual(SILENT);
  expect({ turns: turns(), hasRun: existsSync(path('run')) }).toEqual({ turns: ['Turn 1', 'Turn 2'], hasRun: false });
});
