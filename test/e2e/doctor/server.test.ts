import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { selfSigned } from '../../support/certificate.js';
import { Patient } from '../../support/doctor.js';
import type { Misbehaviour } from '../../support/langfuse-server.js';

let patient: Patient;

beforeEach(async () => {
  patient = await Patient.open();
});

afterEach(() => patient.close());

describe('a server', () => {
  const listening = async (server: Server) => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return (server.address() as AddressInfo).port;
  };
  /** A port that nothing listens at. */
  const unused = async () => {
    const server = createTcpServer();
    const port = await listening(server);
    await new Promise((resolve) => server.close(resolve));
    return port;
  };
  const endpoint = (url: string, env = {}) => patient.told('endpoint', { LANGFUSE_BASE_URL: url, ...env });

  test('that is silent is named, and not waited for', async () => {
    const sockets: Socket[] = [];
    const url = `http://127.0.0.1:${await listening(createTcpServer((socket) => void sockets.push(socket)))}`;
    const startedAt = Date.now();
    expect(await endpoint(url)).toEqual([
      {
        status: 'broken',
        message: `${url} is silent: no answer within 5 s`,
        fix: `see what is between: curl -v ${url}/api/public/health`,
      },
    ]);
    expect(Date.now() - startedAt).toBeLessThan(10_000);
    for (const socket of sockets) socket.destroy();
  });

  test('that is not there, itself or the proxy before it', async () => {
    const [url, proxy] = [`http://127.0.0.1:${await unused()}`, `127.0.0.1:${await unused()}`];
    expect(await endpoint(url)).toEqual([
      {
        status: 'broken',
        message: `nothing listens at ${url} (ECONNREFUSED)`,
        fix: 'start the server, or mend LANGFUSE_BASE_URL',
      },
    ]);
    const env = { HTTP_PROXY: `http://me:hunter2@${proxy}` };
    expect(await endpoint(url, env)).toEqual([
      {
        status: 'broken',
        message: `nothing listens at ${url} (through the proxy http://…@${proxy}) (ECONNREFUSED)`,
        fix: 'start the server, or mend LANGFUSE_BASE_URL, HTTPS_PROXY or HTTP_PROXY, or name the server in NO_PROXY',
      },
    ]);
    const spaced = { HTTP_PROXY: `http://me:hunter2 hunter2@${proxy}` };
    expect(await patient.told('proxy', { ...spaced, LANGFUSE_BASE_URL: url })).toEqual([
      { status: 'ok', message: `http://…@${proxy}` },
    ]);
    expect(await patient.told('proxy', { ...env, LANGFUSE_BASE_URL: url })).toEqual([
      { status: 'ok', message: `http://…@${proxy}` },
    ]);
    expect(await patient.told('proxy', { ...env, LANGFUSE_BASE_URL: url, NO_PROXY: '127.0.0.1' })).toEqual([
      { status: 'none', message: 'none is used' },
    ]);
  });

  test('behind a proxy that is no URL', async () => {
    expect(await endpoint('http://langfuse.invalid', { HTTP_PROXY: 'http://me:hunter2@:x' })).toEqual([
      {
        status: 'broken',
        message: 'the proxy that the environment names is no URL',
        fix: 'mend HTTPS_PROXY or HTTP_PROXY',
      },
    ]);
  });

  test('that never stops answering', async () => {
    const endless = createServer((_, answer) => {
      const more = () => {
        while (answer.write('x'.repeat(65_536)));
      };
      answer.on('drain', more).on('error', () => {});
      more();
    });
    const url = `http://127.0.0.1:${await listening(endless)}`;
    expect(await endpoint(url)).toMatchObject([{ message: `${url} is silent: its answer does not end` }]);
  });

  test('whose name nobody knows', async () => {
    expect(await endpoint('https://langfuse.invalid')).toEqual([
      {
        status: 'broken',
        message: expect.stringMatching(
          /^the name of https:\/\/langfuse\.invalid is not found \((?:ENOTFOUND|EAI_AGAIN)\)$/,
        ),
        fix: 'mend LANGFUSE_BASE_URL',
      },
    ]);
  });

  test('that speaks no HTTP, or no TLS', async () => {
    const port = await listening(createTcpServer((socket) => socket.end('SSH-2.0-OpenSSH_9\r\n')));
    expect(await endpoint(`http://127.0.0.1:${port}`)).toEqual([
      {
        status: 'broken',
        message: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+ speaks no HTTP \(HPE_\w+\)$/),
        fix: 'mend LANGFUSE_BASE_URL',
      },
    ]);
    const url = patient.workplace.server.url.replace('http:', 'https:');
    expect(await endpoint(url)).toEqual([
      {
        status: 'broken',
        message: expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+ speaks no TLS \(\w+\)$/),
        fix: 'write http:// in LANGFUSE_BASE_URL, or have it serve https',
      },
    ]);
  });

  test('whose certificate nobody vouches for, until NODE_EXTRA_CA_CERTS does', async ({ skip }) => {
    const certificate = selfSigned(patient.workplace.home);
    if (!certificate) return skip('a certificate of its own needs openssl');
    const files = { key: readFileSync(certificate.key), cert: readFileSync(certificate.cert) };
    const port = await listening(
      createTlsServer(files, (_, answer) => answer.end('{"status":"OK","version":"4.16.0"}')),
    );
    const url = `https://127.0.0.1:${port}`;
    expect(await endpoint(url)).toEqual([
      {
        status: 'broken',
        message: `the certificate of ${url} is of an authority that Node does not know (DEPTH_ZERO_SELF_SIGNED_CERT)`,
        fix: 'export NODE_EXTRA_CA_CERTS=<its .pem file>, and the same in the env block of your settings',
      },
    ]);
    const env = { NODE_EXTRA_CA_CERTS: certificate.cert };
    expect(await endpoint(url, env)).toEqual([{ status: 'ok', message: `${url} is Langfuse 4.16.0` }]);
    expect(await patient.told('certificates', env)).toEqual([
      { status: 'ok', message: 'NODE_EXTRA_CA_CERTS is ~/cert.pem' },
    ]);
  });

  test('for which the settings name certificates that are not there, and a proxy that the shell does not know', async () => {
    patient.setUp({ NODE_EXTRA_CA_CERTS: '/gone.pem', HTTPS_PROXY: 'http://me:hunter2@proxy:3128' });
    expect(await patient.told('certificates')).toEqual([
      {
        status: 'broken',
        message: 'NODE_EXTRA_CA_CERTS is /gone.pem, which cannot be read',
        fix: 'write the path of a file that can, or remove it',
      },
    ]);
    expect(await patient.told('network')).toEqual(
      ['NODE_EXTRA_CA_CERTS', 'HTTPS_PROXY'].map((variable) => ({
        status: 'warning',
        message: `${variable} is not in the shell as it is in the settings, which hooks have and commands by hand have not`,
        fix: `set it in the shell, too: export ${variable}=…`,
      })),
    );
  });

  const answers = (misbehaviour: Misbehaviour, to = /./) => {
    patient.workplace.server.misbehave = ({ url = '' }) => (to.test(url) ? misbehaviour : undefined);
  };

  test('that is no Langfuse, sends elsewhere, or is ill', async () => {
    const { url } = patient.workplace.server;
    answers({ status: 200, headers: { 'content-type': 'text/html' }, body: '<html>hello</html>' });
    expect(await endpoint(url)).toEqual([
      {
        status: 'broken',
        message: `what answers at ${url} is no Langfuse (200)`,
        fix: 'write to LANGFUSE_BASE_URL the address that its page has in a browser, up to the first /project',
      },
    ]);
    expect(await patient.told('keys')).toEqual([]);
    answers({ status: 308, headers: { location: 'https://langfuse.test/api/public/health' } });
    expect(await endpoint(url)).toEqual([
      {
        status: 'broken',
        message: `${url} sends elsewhere (308), which is not followed`,
        fix: 'write "LANGFUSE_BASE_URL": "https://langfuse.test"',
      },
    ]);
    answers({ status: 302, headers: { location: '/login' } });
    expect(await endpoint(url)).toMatchObject([{ fix: 'write its own address to LANGFUSE_BASE_URL' }]);
    answers({ status: 301, headers: { location: '/api/public/health' } });
    expect(await endpoint(url)).toMatchObject([{ fix: 'write its own address to LANGFUSE_BASE_URL' }]);
    answers({ status: 503, body: '{}' });
    expect(await endpoint(url)).toEqual([
      { status: 'broken', message: `${url} is ill (503)`, fix: 'wait, or ask who runs it' },
    ]);
  });

  test('whose project has a name that is none', async () => {
    answers({ body: '{"data":[{"id":"p","name":{"toString":1}}]}' }, /projects/);
    expect(await patient.told('keys')).toEqual([{ status: 'ok', message: 'they open the project ""' }]);
  });

  test('that refuses the keys', async () => {
    const { url } = patient.workplace.server;
    const env = { LANGFUSE_PUBLIC_KEY: 'pk-lf-other' };
    expect(await patient.told('keys', env)).toEqual([
      {
        status: 'broken',
        message: 'the server refuses the keys (401)',
        fix: `make new ones at ${url} (project settings, API keys) and: cc-langfuse install`,
      },
    ]);
    expect(await patient.told('otlp', env)).toEqual([
      { status: 'none', message: 'there; whether it takes anything is known once the keys are right' },
    ]);
  });

  test('that does not tell the project, or nothing at all of the keys', async () => {
    const { url } = patient.workplace.server;
    answers({ body: '{"data":[]}' }, /projects/);
    expect(await patient.told('keys')).toEqual([
      {
        status: 'warning',
        message: 'the server does not tell the project (200)',
        fix: `look whether it is there: ${url}`,
      },
    ]);
    answers({ disconnect: 'before taking' }, /projects|otel/);
    const fix = 'run it once more; if it stays, ask who runs the server';
    expect(await patient.told('keys')).toEqual([
      { status: 'broken', message: 'not answered about the keys: ECONNRESET', fix },
    ]);
    expect(await patient.told('otlp')).toEqual([
      { status: 'broken', message: 'its OpenTelemetry endpoint does not answer: ECONNRESET', fix },
    ]);
  });

  test('from before OpenTelemetry, which has its ingestion API', async () => {
    patient.workplace.server.isOlder = true;
    expect(await patient.told('otlp')).toEqual([
      {
        status: 'none',
        message: 'no OpenTelemetry endpoint (404), as Langfuse before 3.22: its ingestion API is used',
      },
    ]);
    expect(await patient.told('ingestion')).toEqual([{ status: 'ok', message: 'takes events (207)' }]);
    answers({ status: 404 }, /ingestion/);
    expect(await patient.told('ingestion')).toEqual([
      {
        status: 'broken',
        message: 'the server has no ingestion API (404)',
        fix: 'ask who runs the server, or what lies before it',
      },
    ]);
  });

  test('whose door CC_LANGFUSE_TRANSPORT names, and which may not have it', async () => {
    const [otlp, ingestion] = [{ CC_LANGFUSE_TRANSPORT: 'otlp' }, { CC_LANGFUSE_TRANSPORT: 'ingestion' }];
    expect(await patient.told('otlp', otlp)).toEqual([{ status: 'ok', message: 'takes OpenTelemetry (200)' }]);
    expect(await patient.told('ingestion', ingestion)).toEqual([
      {
        status: 'broken',
        message: 'Langfuse 4.16.0 takes no traces by its ingestion API, which CC_LANGFUSE_TRANSPORT names',
        fix: 'take CC_LANGFUSE_TRANSPORT out, so that they go by OpenTelemetry',
      },
    ]);
    patient.workplace.server.isOlder = true;
    expect(await patient.told('otlp', otlp)).toEqual([
      {
        status: 'broken',
        message: 'no OpenTelemetry endpoint (404), as Langfuse before 3.22',
        fix: 'take CC_LANGFUSE_TRANSPORT out, so that its ingestion API is used; or update it',
      },
    ]);
    expect(await patient.told('otlp', ingestion)).toEqual([]);
    expect(await patient.told('ingestion', ingestion)).toEqual([{ status: 'ok', message: 'takes events (207)' }]);
  });

  test('whose OpenTelemetry endpoint something hides, or answers for with a page', async () => {
    answers({ status: 404 }, /otel/);
    expect(await patient.told('otlp')).toEqual([
      {
        status: 'broken',
        message: 'no OpenTelemetry endpoint (404), which Langfuse 4.16.0 has',
        fix: 'ask who runs the server, or what lies before it',
      },
    ]);
    answers({ headers: { 'content-type': 'text/html' } }, /otel/);
    expect(await patient.told('otlp')).toEqual([
      {
        status: 'broken',
        message: 'this is not Langfuse: it answered 200 with a web page',
        fix: 'ask who runs the server, or what lies before it',
      },
    ]);
  });

  test.each([
    ['behind', 600_000],
    ['ahead of', -600_000],
  ])('whose clock finds ours %s it', async (side, ms) => {
    answers({ headers: { date: new Date(Date.now() + ms).toUTCString() } });
    expect(await patient.told('clock')).toEqual([
      {
        status: 'warning',
        message: expect.stringMatching(
          RegExp(`^(?:9|10) min ${side} the server's: turns stand at times when nobody looks$`),
        ),
        fix: 'timedatectl set-ntp true (or the time settings of the system)',
      },
    ]);
  });

  test('is asked nothing without keys', async () => {
    expect(await patient.told('endpoint', { LANGFUSE_SECRET_KEY: '' })).toEqual([
      { status: 'none', message: 'not asked: without keys and a server there is nothing to ask' },
    ]);
    expect(patient.workplace.server.requests).toEqual([]);
  });
});
