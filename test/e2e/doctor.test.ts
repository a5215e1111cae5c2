import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { explainNoSystemAuthorities } from '../../src/langfuse/http/certificates.lazy.js';
import { version } from '../../src/shared/version.js';
import { createCertificate } from '../support/certificate.js';
import { DoctorHome, hooksOf, listen } from '../support/doctor.js';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { Newcomer } from '../support/newcomer.js';
import { PROGRAM, run } from '../support/program.js';
import { sessionFile } from '../support/state-files.js';
import { runInTerminal } from '../support/terminal.js';

let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
});

afterEach(() => home.close());

/** What doctor says of certificates depends on the version of Node. */
const CERTIFICATES =
  explainNoSystemAuthorities() === undefined
    ? "Node's own and the system's"
    : `only Node's own, ${explainNoSystemAuthorities()}`;

describe('doctor', () => {
  /** Without what differs from machine to machine and from run to run. */
  const plain = (text: string) =>
    text
      .replaceAll(process.execPath, '/usr/bin/node')
      .replaceAll(realpathSync(PROGRAM), '/opt/cc-langfuse/dist/cli.cjs')
      .replaceAll(process.version, 'v20.19.0')
      .replaceAll(` ${version} `, ' 1.0.0 ')
      .replaceAll(`:${home.server.port}`, ':3000')
      .replace(/\d{4}-\d\d-\d\d \d\d:\d\d, \d+ s ago/, '2026-10-01 12:00, 1 s ago')
      .replace(/(\(1 session, )\d+ B/, '$1625 B')
      .replace(/by \d s\b/, 'by 1 s');

  test('reports that nothing is broken in a home that exports to Langfuse', async () => {
    home.setUp({ LANGFUSE_TAGS: 'team-a' });
    const session = { sessionId: sessionIdOf(1), cwd: home.project, turns: 2, startsAt: Date.now() - 86_400_000 };
    writeSession(home.projects, session);
    await run(['backfill', '--yes', '--all'], home.env);
    const { stdout, exitCode } = await home.doctor();
    expect(exitCode).toBe(0);
    expect(plain(stdout)).toMatchInlineSnapshot(`
      "Program
        ✓ node            v20.19.0 (/usr/bin/node)
        ✓ cc-langfuse     1.0.0 (/opt/cc-langfuse/dist/cli.cjs)
        ✓ claude-code     2.1.326, according to the last session (00000001-0000-4000-8000-000000000000)

      Hooks
        ✓ hooks           registered in user settings (~/.claude/settings.json)
        ✓ hook-program    ~/.claude/settings.json starts this program

      Settings
        ✓ tracing         on (from ~/.claude/settings.json)
        ✓ public-key      LANGFUSE_PUBLIC_KEY is pk-lf-em… (from ~/.claude/settings.json)
        ✓ secret-key      LANGFUSE_SECRET_KEY is sk-lf-… (from ~/.claude/settings.json)
        ✓ base-url        LANGFUSE_BASE_URL is http://127.0.0.1:3000 (from ~/.claude/settings.json)
        ✓ setting         LANGFUSE_TAGS is team-a (from ~/.claude/settings.json)

      Files
        ✓ state-folder    ~/.claude/state
        ✓ state           ~/.claude/state/cc-langfuse_sessions (1 session)
        - log             nothing has been logged yet

      Server
        ✓ endpoint        http://127.0.0.1:3000 is Langfuse 4.16.0
        ✓ keys            for the project "Embedded"
        ✓ otlp            accepts OpenTelemetry (200)
        ✓ clock           differs from the server's by 1 s
        - proxy           not used
        - certificates    ${CERTIFICATES}
        ✓ prices          Langfuse has prices for claude-opus-5

      Sessions
        ✓ last-export     2026-10-01 12:00, 1 s ago: session 00000001-0000-4000-8000-000000000000, 2 turns
        ✓ pending         no session is waiting to be sent

      Nothing is broken.
      "
    `);
  });

  test('reports that nothing is broken after install', async () => {
    const newcomer = await Newcomer.arrive();
    expect(await newcomer.install()).toMatchObject({ exitCode: 0 });
    const { stdout, exitCode } = await newcomer.run(['doctor']);
    await newcomer.close();
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/\nNothing is broken\.\n$/);
  });

  test('says how to start in an empty home', async () => {
    home.env = { HOME: home.home };
    const { stdout, exitCode } = await home.doctor();
    expect(exitCode).toBe(1);
    expect(plain(stdout)).toMatchInlineSnapshot(`
      "Program
        ✓ node            v20.19.0 (/usr/bin/node)
        ✓ cc-langfuse     1.0.0 (/opt/cc-langfuse/dist/cli.cjs)
        - claude-code     unknown, because there is no session on disk

      Hooks
        ✗ hooks           not registered in any settings file
                        → cc-langfuse install

      Settings
        - tracing         off: TRACE_TO_LANGFUSE is not set; see hooks
        - public-key      LANGFUSE_PUBLIC_KEY is not set; see hooks
        - secret-key      LANGFUSE_SECRET_KEY is not set; see hooks

      Files
        - state-folder    ~/.claude/state does not exist yet; the first hook creates it
        - state           nothing has been exported yet
        - log             nothing has been logged yet

      Server
        - endpoint        not asked: the keys or the URL are missing
        - proxy           not used
        - certificates    ${CERTIFICATES}

      Sessions
        - last-export     no turn has been exported yet
        ✓ pending         no session is waiting to be sent

      1 thing is broken.
      "
    `);
  });

  test('prints JSON, sends no observation and leaves every file as it was', async () => {
    home.setUp();
    const pending = { since: '2026-10-01T00:00:00.000Z', attempts: 1, reason: 'none' };
    home.writeState({ s: 'corrupt', t: { last_line: 0, turn_count: 0, updated: '', pending } });
    home.writeSettings('not JSON', 'local');
    writeFileSync(sessionFile(home.stateFolder, 's', 'x.lock'), '1 elsewhere');
    const before = listTree(home.home);
    const { stdout, exitCode } = await home.doctor(['--json']);
    const { ok, version: reported, checks } = JSON.parse(stdout);
    expect(reported).toBe(version);
    expect({ exitCode, ok }).toEqual({ exitCode: 1, ok: false });
    expect(checks.length).toBeGreaterThan(15);
    const statuses = checks.map(({ status }: { status: string }) => status);
    expect(new Set(statuses)).toEqual(new Set(['ok', 'warning', 'broken', 'none']));
    for (const check of checks) {
      expect(check).toEqual({
        name: expect.stringMatching(/^[a-z-]+$/),
        part: expect.stringMatching(/^(?:program|hooks|settings|files|server|sessions)$/),
        status: expect.stringMatching(/^(?:ok|warning|broken|none)$/),
        message: expect.any(String),
        ...(['warning', 'broken'].includes(check.status) && { fix: expect.stringMatching(/./) }),
        details: expect.any(Object),
      });
    }
    expect(listTree(home.home)).toEqual(before);
    expect(home.server.observations).toEqual([]);
    expect(home.server.requests.map(({ spans, events }) => spans + events)).toEqual([0, 0, 0, 0]);
  });

  test('fits into a terminal of 80 columns, with colours unless NO_COLOR is set', async () => {
    home.env = { HOME: home.home };
    const { screen, exitCode } = await runInTerminal(['doctor'], home);
    expect(exitCode).toBe(1);
    expect(screen).toContain('\u001b[31m✗\u001b[39m hooks');
    const lines = stripVTControlCharacters(screen).split('\r\n');
    // Paths stay whole, so that they can be copied.
    expect(lines.filter((line) => line.length > 80 && !/^ +\S+$| {2,}\S+ \(\S+\)$/.test(line))).toEqual([]);
    home.writeSettings(hooksOf());
    const { screen: wrapped } = await runInTerminal(['doctor'], home);
    expect(stripVTControlCharacters(wrapped).split('\r\n')).toEqual(
      expect.arrayContaining([
        '                  → cc-langfuse install, or set "TRACE_TO_LANGFUSE": "true" in',
        '                    the env block of ~/.claude/settings.json',
        '  - public-key      LANGFUSE_PUBLIC_KEY is not set; see tracing',
        '  - secret-key      LANGFUSE_SECRET_KEY is not set; see tracing',
        '1 thing is broken.',
      ]),
    );
    home.env = { HOME: home.home, NO_COLOR: '1' };
    const { screen: plainly } = await runInTerminal(['doctor'], home);
    expect(plainly).toBe(stripVTControlCharacters(plainly));
  });

  test('counts questions that the server leaves without an answer as one fault', async () => {
    home.setUp();
    home.server.misbehave = ({ url = '' }) => (/projects|otel/.test(url) ? { disconnect: 'before taking' } : undefined);
    const { stdout } = await home.doctor();
    expect(plain(stdout)).toContain(`
  ✗ keys            the server could not check the keys: ECONNRESET
                  → run cc-langfuse doctor again; if nothing has changed, ask the server's administrator
  - otlp            the OpenTelemetry endpoint does not answer: ECONNRESET; see keys
`);
    expect(stdout).toMatch(/\n1 thing is broken\.\n$/);
    const { checks } = JSON.parse((await home.doctor(['--json'])).stdout);
    const broken = checks.filter(({ status }: { status: string }) => status === 'broken');
    expect(broken.map(({ name, cause }: { name: string; cause?: string }) => [name, cause])).toEqual([
      ['keys', 'ECONNRESET'],
      ['otlp', 'ECONNRESET'],
    ]);
  });

  test('exits with 0 if there are only warnings', async () => {
    home.setUp({ CC_LANGFUSE_TIMEOUT: 'soon' });
    const { stdout, exitCode } = await home.doctor();
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/\nNothing is broken, 1 warning\.\n$/);
  });

  test.each([
    [['--frob'], "Unknown option '--frob'; --help lists the options"],
    [['x'], 'x: doctor takes no operands; see doctor --help'],
  ])('rejects the arguments %j', async (args, words) => {
    expect(await home.doctor(args)).toMatchObject({ exitCode: 2, stdout: '', stderr: `cc-langfuse: ${words}\n` });
  });

  test('finds that Node is too old', async () => {
    const fake = join(home.home, 'old.cjs');
    writeFileSync(fake, "Object.defineProperty(process, 'version', { value: 'v18.20.0' });");
    const found = await home.checkWithProgram({ NODE_OPTIONS: `--require ${fake}` });
    expect(found.of('node')).toEqual([
      {
        status: 'broken',
        message: `v18.20.0 (${process.execPath}) is older than 20.19`,
        fix: 'install Node 20.19 or newer: https://nodejs.org',
      },
    ]);
  });

  test('does not wait forever for a server that does not answer', async () => {
    const sockets: Socket[] = [];
    const url = `http://127.0.0.1:${await listen(createTcpServer((socket) => void sockets.push(socket)))}`;
    expect((await home.checkWithProgram({ LANGFUSE_BASE_URL: url })).of('endpoint')).toEqual([
      {
        status: 'broken',
        // The message names the time that was left when the request was sent.
        message: expect.stringMatching(RegExp(`^the request to ${url} failed: no answer within (?:5|4\\.\\d) s$`)),
        fix: `see where it fails: curl -v ${url}/api/public/health`,
      },
    ]);
    expect(sockets.length).toBeGreaterThan(0);
    for (const socket of sockets) socket.destroy();
  });

  test('says so if a server has no TLS', async () => {
    const url = home.server.url.replace('http:', 'https:');
    expect((await home.checkWithProgram({ LANGFUSE_BASE_URL: url })).of('endpoint')).toEqual([
      {
        status: 'broken',
        message: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+ cannot be reached by TLS \(\w+\)$/),
        fix: 'use http:// in LANGFUSE_BASE_URL, or make the server use https',
      },
    ]);
  });

  test('says so if Node does not trust a certificate, unless NODE_EXTRA_CA_CERTS names it (needs openssl)', async ({
    skip,
  }) => {
    const certificate = createCertificate(home.home) ?? skip();
    const files = { key: readFileSync(certificate.key), cert: readFileSync(certificate.cert) };
    const port = await listen(createTlsServer(files, (_, answer) => answer.end('{"status":"OK","version":"4.16.0"}')));
    const url = `https://127.0.0.1:${port}`;
    expect((await home.checkWithProgram({ LANGFUSE_BASE_URL: url })).of('endpoint')).toEqual([
      {
        status: 'broken',
        message: `the certificate of ${url} is signed by an authority that Node does not trust (DEPTH_ZERO_SELF_SIGNED_CERT)`,
        fix: 'export NODE_EXTRA_CA_CERTS=<its .pem file>, and set the same in the env block of your settings',
      },
    ]);
    const found = await home.checkWithProgram({ LANGFUSE_BASE_URL: url, NODE_EXTRA_CA_CERTS: certificate.cert });
    expect(found.of('endpoint')).toEqual([{ status: 'ok', message: `${url} is Langfuse 4.16.0` }]);
    expect(found.of('certificates')).toEqual([{ status: 'ok', message: 'NODE_EXTRA_CA_CERTS is ~/cert.pem' }]);
  });

  test('warns of a session that waits to be sent, with the reason', async () => {
    const session = { sessionId: sessionIdOf(1), cwd: home.project, turns: 2, startsAt: Date.now() - 86_400_000 };
    writeSession(home.projects, session);
    home.server.misbehave = ({ method }) => (method === 'GET' ? undefined : { status: 418 });
    await run(['backfill', '--yes', '--all'], home.env);
    home.server.misbehave = () => undefined;
    const since = 'since \\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d \\(\\d+ s\\)';
    expect((await home.checkWithProgram()).of('pending')).toEqual([
      {
        status: 'warning',
        message: expect.stringMatching(RegExp(`^${sessionIdOf(1)} ${since}, 1 attempt: the server answers 418$`)),
        fix: `cc-langfuse backfill ${sessionIdOf(1)} (the next hook sends it, too)`,
      },
    ]);
    expect((await home.checkWithProgram({ LANGFUSE_PUBLIC_KEY: 'pk-lf-another' })).of('pending')).toEqual([
      {
        status: 'warning',
        message: expect.stringMatching(/, for another project: the server answers 418$/),
        fix: `cc-langfuse backfill ${sessionIdOf(1)} (the next hook in its folder sends it, too)`,
      },
    ]);
  });

  test('prints a fix that can be copied into a shell for a folder with a space', async () => {
    const spaced = join(home.home, 'my home');
    const state = join(spaced, '.claude', 'state');
    mkdirSync(state, { recursive: true });
    writeFileSync(join(state, 'cc-langfuse_hook.log'), '', { mode: 0o644 });
    const fix = `chmod go= '${join(state, 'cc-langfuse_hook.log')}'`;
    // A shell would not expand `~` between quotes.
    expect((await home.doctor([], { HOME: spaced })).stdout).toContain(`\u2192 ${fix}\n`);
  });
});

function listTree(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name) => {
      const path = join(folder, name);
      const status = statSync(path);
      const hash = status.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : '';
      return `${name} ${status.mode} ${status.mtimeMs} ${hash}`;
    });
}
