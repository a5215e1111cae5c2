import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DoctorHome, listen } from '../../support/doctor.js';
import { type LangfuseServer, type Misbehaviour, PUBLIC_KEY, SECRET_KEY } from '../../support/langfuse-server.js';

let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
});

afterEach(() => home.close());

/** A port that nothing listens at. */
async function unusedPort(): Promise<number> {
  const server = createTcpServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const endpointAt = async (url: string) => (await home.check({ LANGFUSE_BASE_URL: url })).of('endpoint');

describe('the endpoint is broken', () => {
  test('if the server never stops answering', async () => {
    const endless = createServer((_, answer) => {
      const more = () => {
        while (answer.write('x'.repeat(65_536)));
      };
      answer.on('drain', more).on('error', () => {});
      more();
    });
    const url = `http://127.0.0.1:${await listen(endless)}`;
    expect(await endpointAt(url)).toMatchObject([{ message: `the request to ${url} failed: its answer does not end` }]);
  });

  test('if nothing listens there', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`;
    expect(await endpointAt(url)).toEqual([
      {
        status: 'broken',
        message: `nothing listens at ${url} (ECONNREFUSED)`,
        fix: 'start the server, or fix LANGFUSE_BASE_URL',
      },
    ]);
  });

  test('if its host name cannot be resolved', async () => {
    expect(await endpointAt('https://langfuse.invalid')).toEqual([
      {
        status: 'broken',
        message: expect.stringMatching(
          /^the host name of https:\/\/langfuse\.invalid cannot be resolved \((?:ENOTFOUND|EAI_AGAIN)\)$/,
        ),
        fix: 'fix LANGFUSE_BASE_URL',
      },
    ]);
  });

  test('if it does not speak HTTP', async () => {
    const port = await listen(createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH_9\r\n')));
    expect(await endpointAt(`http://127.0.0.1:${port}`)).toEqual([
      {
        status: 'broken',
        message: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+ does not speak HTTP \(HPE_\w+\)$/),
        fix: 'fix LANGFUSE_BASE_URL',
      },
    ]);
  });
});

describe('a proxy', () => {
  const throughProxy = async (env: { [name: string]: string }) => {
    const url = `http://127.0.0.1:${await unusedPort()}`;
    return { url, found: await home.check({ LANGFUSE_BASE_URL: url, ...env }) };
  };

  test.each([
    ['', 'http://me:hunter2@'],
    [' with a space', 'http://me:hunter2 hunter2@'],
  ])('is shown without its password%s', async (_, credentials) => {
    const proxy = `127.0.0.1:${await unusedPort()}`;
    const { url, found } = await throughProxy({ HTTP_PROXY: `${credentials}${proxy}` });
    expect(found.of('endpoint')).toEqual([
      {
        status: 'broken',
        message: `nothing listens at ${url} (through the proxy http://…@${proxy}) (ECONNREFUSED)`,
        fix: 'start the server, or fix LANGFUSE_BASE_URL, HTTPS_PROXY or HTTP_PROXY, or add the server to NO_PROXY',
      },
    ]);
    expect(found.of('proxy')).toEqual([{ status: 'ok', message: `http://…@${proxy}` }]);
  });

  test('is not used for a server in NO_PROXY', async () => {
    const { found } = await throughProxy({ HTTP_PROXY: 'http://127.0.0.1:1', NO_PROXY: '127.0.0.1' });
    expect(found.of('proxy')).toEqual([{ status: 'none', message: 'not used' }]);
  });

  test('is broken if it is not a URL', async () => {
    const env = { LANGFUSE_BASE_URL: 'http://langfuse.invalid', HTTP_PROXY: 'http://me:hunter2@:x' };
    expect((await home.check(env)).of('endpoint')).toEqual([
      {
        status: 'broken',
        message: 'the proxy in the environment is not a URL',
        fix: 'fix HTTPS_PROXY or HTTP_PROXY',
      },
    ]);
  });

  test('is broken if it is not an http proxy; then the server is not asked', async () => {
    const { url, found } = await throughProxy({ ALL_PROXY: 'socks5://me:hunter2@127.0.0.1:1080' });
    expect(found.lines(/^(?:endpoint|proxy)$/)).toEqual([
      `none endpoint: ${url} was not asked, because the proxy cannot be used`,
      'broken proxy: ALL_PROXY names a socks5 proxy, but only http and https proxies are supported',
    ]);
    expect(found.of('proxy')).toMatchObject([
      { fix: 'set HTTPS_PROXY or HTTP_PROXY to an http or https proxy, or add the server to NO_PROXY' },
    ]);
  });

  test('and certificates that only the settings name are warnings, since your own commands do not use them', async () => {
    home.setUp({ NODE_EXTRA_CA_CERTS: '/gone.pem', HTTPS_PROXY: 'http://me:hunter2@proxy:3128' });
    const found = await home.check();
    expect(found.of('certificates')).toEqual([
      {
        status: 'broken',
        message: 'NODE_EXTRA_CA_CERTS is /gone.pem, which cannot be read',
        fix: 'set it to a file that can be read, or remove it',
      },
    ]);
    expect(found.of('network')).toEqual(
      ['NODE_EXTRA_CA_CERTS', 'HTTPS_PROXY'].map((variable) => ({
        status: 'warning',
        message: `${variable} in the settings differs from the shell: hooks use the settings, commands that you run yourself the shell`,
        fix: `set it in the shell, too: export ${variable}=…`,
      })),
    );
  });
});

/** Makes the server give another answer to the requests with such paths. */
function answer(misbehaviour: Misbehaviour, to = /./): void {
  home.server.misbehave = ({ url = '' }) => (to.test(url) ? misbehaviour : undefined);
}

describe('what answers', () => {
  test('may not be Langfuse, and then nothing is said about the keys', async () => {
    const { url } = home.server;
    answer({ status: 200, headers: { 'content-type': 'text/html' }, body: '<html>hello</html>' });
    const found = await home.check();
    expect(found.of('endpoint')).toEqual([
      {
        status: 'broken',
        message: `${url} is not Langfuse (200)`,
        fix: "set LANGFUSE_BASE_URL to the address of your project's page in a browser",
      },
    ]);
    expect(found.of('keys')).toEqual([]);
  });

  test.each([
    [308, 'https://langfuse.test/api/public/health', 'set "LANGFUSE_BASE_URL": "https://langfuse.test"'],
    [302, '/login', 'set LANGFUSE_BASE_URL to the address that it redirects to'],
    [301, '/api/public/health', 'set LANGFUSE_BASE_URL to the address that it redirects to'],
  ])('may redirect (%i to %s)', async (status, location, fix) => {
    const { url } = home.server;
    answer({ status, headers: { location } });
    const message = `${url} redirects (${status}), and redirects are not followed`;
    expect(await endpointAt(url)).toEqual([{ status: 'broken', message, fix }]);
  });

  test('may return errors', async () => {
    const { url } = home.server;
    answer({ status: 503, body: '{}' });
    expect(await endpointAt(url)).toEqual([
      { status: 'broken', message: `${url} returns errors (503)`, fix: 'wait, or ask whoever runs it' },
    ]);
  });
});

describe('the keys', () => {
  const RUN_AGAIN = "run cc-langfuse doctor again; if nothing has changed, ask the server's administrator";

  test('may be for a project whose name is malformed', async () => {
    answer({ body: '{"data":[{"id":"p","name":{"toString":1}}]}' }, /projects/);
    expect((await home.check()).of('keys')).toEqual([{ status: 'ok', message: 'for the project ""' }]);
  });

  /** Replaces the permissions of the keys, and returns the findings about them and about the endpoint. */
  const checkAs = async (permissions: Parameters<LangfuseServer['keys']['set']>[1]) => {
    home.server.keys.set(`${PUBLIC_KEY}:${SECRET_KEY}`, permissions);
    const found = await home.check();
    return [...found.of('keys'), ...found.of('otlp')];
  };
  const UNTRIED = {
    status: 'none',
    message: 'the OpenTelemetry endpoint answers; fix the keys to find out whether it accepts data',
  };
  const createAt = (kind = '') =>
    `create ${kind} at ${home.server.url} (project settings, API keys), then run: cc-langfuse install`;

  test('may be for ingestion only', async () => {
    expect(await checkAs({ mayRead: false })).toEqual([
      { status: 'ok', message: 'for ingestion only: they write, and read nothing (403)' },
      { status: 'ok', message: 'accepts OpenTelemetry (200)' },
    ]);
  });

  test('are broken if they only read', async () => {
    const words = 'Access denied - insufficient permissions for this endpoint';
    expect(await checkAs({ mayRead: true, mayWrite: false })).toEqual([
      {
        status: 'broken',
        message: `these keys read project "Embedded", but may not write to it (403): "${words}"`,
        fix: createAt('keys with full access, or for ingestion,'),
      },
      UNTRIED,
    ]);
  });

  test('are broken if they may do neither, as those for scores', async () => {
    const words = 'Access denied - insufficient permissions for this endpoint';
    expect(await checkAs({ mayRead: false, mayWrite: false })).toEqual([
      {
        status: 'broken',
        message: `the server refuses the keys (403): "${words}"`,
        fix: createAt('new ones with full access, or for ingestion,'),
      },
      UNTRIED,
    ]);
  });

  test.each([
    ['are wrong', undefined, "Invalid credentials. Confirm that you've configured the correct host"],
    ['have expired', { mayRead: true, isExpired: true }, 'API key has expired'],
  ])('are broken if they %s', async (_, permissions, words) => {
    home.server.keys.clear();
    const found = permissions ? await checkAs(permissions) : await home.check().then((all) => all.of('keys'));
    expect(found[0]).toEqual({
      status: 'broken',
      message: `the server refuses the keys (401): "${words}"`,
      fix: createAt('new ones'),
    });
  });

  test('are a warning if the server does not name their project', async () => {
    const { url } = home.server;
    answer({ body: '{"data":[]}' }, /projects/);
    expect((await home.check()).of('keys')).toEqual([
      {
        status: 'warning',
        message: "the server does not name the keys' project (200)",
        fix: `check that it exists: ${url}`,
      },
    ]);
  });

  test('are broken if the server does not answer', async () => {
    answer({ disconnect: 'before taking' }, /projects|otel/);
    const found = await home.check();
    expect(found.of('keys')).toEqual([
      {
        status: 'broken',
        message: 'the server could not check the keys: ECONNRESET',
        fix: RUN_AGAIN,
      },
    ]);
    expect(found.of('otlp')).toEqual([
      { status: 'broken', message: 'the OpenTelemetry endpoint does not answer: ECONNRESET', fix: RUN_AGAIN },
    ]);
  });

  test('that are missing mean that nothing is asked', async () => {
    expect((await home.check({ LANGFUSE_SECRET_KEY: '' })).of('endpoint')).toEqual([
      { status: 'none', message: 'not asked: the keys or the URL are missing' },
    ]);
    expect(home.server.requests).toEqual([]);
  });
});

describe('a server without an OpenTelemetry endpoint', () => {
  const MISSING = 'no OpenTelemetry endpoint (404); Langfuse has one from 3.22 on';
  const ASK = 'ask whoever runs the server or the proxy in front of it';

  test('is fine if it has the ingestion API', async () => {
    home.server.isOlder = true;
    expect((await home.check()).lines(/^(?:otlp|ingestion)$/)).toEqual([
      `none otlp: ${MISSING}, so the ingestion API is used`,
      'ok ingestion: accepts events (207)',
    ]);
  });

  test('is broken without the ingestion API', async () => {
    home.server.isOlder = true;
    answer({ status: 404 }, /ingestion/);
    expect((await home.check()).of('ingestion')).toEqual([
      { status: 'broken', message: 'the server has no ingestion API (404)', fix: ASK },
    ]);
  });

  test('is broken if CC_LANGFUSE_TRANSPORT is otlp', async () => {
    home.server.isOlder = true;
    expect((await home.check({ CC_LANGFUSE_TRANSPORT: 'otlp' })).of('otlp')).toEqual([
      {
        status: 'broken',
        message: MISSING,
        fix: 'remove CC_LANGFUSE_TRANSPORT to use the ingestion API, or update Langfuse',
      },
    ]);
  });

  test('is not asked for it if CC_LANGFUSE_TRANSPORT is ingestion', async () => {
    home.server.isOlder = true;
    expect((await home.check({ CC_LANGFUSE_TRANSPORT: 'ingestion' })).lines(/^(?:otlp|ingestion)$/)).toEqual([
      'ok ingestion: accepts events (207)',
    ]);
  });

  test('is broken if its version should have one', async () => {
    answer({ status: 404 }, /otel/);
    expect((await home.check()).of('otlp')).toEqual([
      { status: 'broken', message: 'no OpenTelemetry endpoint (404), although Langfuse 4.16.0 has one', fix: ASK },
    ]);
  });

  test('is broken if a page answers in its place', async () => {
    answer({ headers: { 'content-type': 'text/html' } }, /otel/);
    expect((await home.check()).of('otlp')).toEqual([
      { status: 'broken', message: 'this is not Langfuse: it answered 200 with a web page', fix: ASK },
    ]);
  });
});

describe('a new server', () => {
  test('accepts OpenTelemetry if CC_LANGFUSE_TRANSPORT asks for it', async () => {
    expect((await home.check({ CC_LANGFUSE_TRANSPORT: 'otlp' })).of('otlp')).toEqual([
      { status: 'ok', message: 'accepts OpenTelemetry (200)' },
    ]);
  });

  test('accepts no traces by the ingestion API', async () => {
    expect((await home.check({ CC_LANGFUSE_TRANSPORT: 'ingestion' })).of('ingestion')).toEqual([
      {
        status: 'broken',
        message: 'CC_LANGFUSE_TRANSPORT selects the ingestion API, which accepts no traces in Langfuse 4.16.0',
        fix: 'remove CC_LANGFUSE_TRANSPORT to send by OpenTelemetry',
      },
    ]);
  });
});

test.each([
  ['behind', 600_000],
  ['ahead of', -600_000],
])('a clock that is 10 minutes %s the server’s is a warning', async (side, ms) => {
  answer({ headers: { date: new Date(Date.now() + ms).toUTCString() } });
  expect((await home.check()).of('clock')).toEqual([
    {
      status: 'warning',
      message: expect.stringMatching(RegExp(`^(?:9|10) min ${side} the server's, so turns appear at the wrong time$`)),
      fix: 'timedatectl set-ntp true (or the time settings of the system)',
    },
  ]);
});
