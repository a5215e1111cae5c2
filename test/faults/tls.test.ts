import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import * as tls from 'node:tls';
import { expect, test } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { assistant, SESSION, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';

test('the hook sends nothing to a server whose certificate Node does not trust, until NODE_EXTRA_CA_CERTS names it (needs openssl)', async ({
  skip,
}) => {
  const workplace = await Workplace.open();
  const certificate = createCertificate(workplace.home);
  if (!certificate) {
    await workplace.close();
    return skip();
  }
  const { key, cert } = certificate;
  const seen: (string | undefined)[] = [];
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (incoming, outgoing) => {
    seen.push(incoming.headers.authorization);
    incoming.resume();
    outgoing.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const path = join(workplace.home, `${SESSION}.jsonl`);
    mkdirSync(workplace.stateFolder, { recursive: true });
    writeFileSync(path, `${JSON.stringify(user('q'))}\n${JSON.stringify(assistant('m', 'a'))}\n`);
    const { port } = server.address() as AddressInfo;
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: `https://127.0.0.1:${port}` };
    const payload = { session_id: SESSION, transcript_path: path, hook_event_name: 'Stop' };
    expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '' });
    expect(seen).toEqual([]);
    expect(workplace.log).toMatchObject([{ msg: `127.0.0.1:${port} cannot be reached: DEPTH_ZERO_SELF_SIGNED_CERT` }]);
    workplace.repairServer();
    workplace.env = { ...workplace.env, NODE_EXTRA_CA_CERTS: cert };
    expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '' });
    expect(seen).toEqual([expect.stringMatching(/^Basic /)]);
  } finally {
    server.closeAllConnections();
    server.close();
    await workplace.close();
  }
});

test('the hook trusts the authorities of the system, as Claude Code does, unless the user does not (needs Node 22.15 and openssl)', async ({
  skip,
}) => {
  const workplace = await Workplace.open();
  const certificate = createCertificate(workplace.home);
  if (!certificate || !('getCACertificates' in tls)) {
    await workplace.close();
    return skip();
  }
  const { key, cert } = certificate;
  let requests = 0;
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (incoming, outgoing) => {
    requests += 1;
    incoming.resume();
    outgoing.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const path = join(workplace.home, `${SESSION}.jsonl`);
    writeFileSync(path, `${JSON.stringify(user('q'))}\n${JSON.stringify(assistant('m', 'a'))}\n`);
    const { port } = server.address() as AddressInfo;
    const env = { ...workplace.env, LANGFUSE_BASE_URL: `https://127.0.0.1:${port}`, SSL_CERT_FILE: cert };
    const payload = { session_id: SESSION, transcript_path: path, hook_event_name: 'Stop' };
    workplace.env = { ...env, CLAUDE_CODE_CERT_STORE: 'bundled' };
    await workplace.hook(payload);
    expect(requests).toBe(0);
    expect(workplace.log).toMatchObject([{ msg: `127.0.0.1:${port} cannot be reached: DEPTH_ZERO_SELF_SIGNED_CERT` }]);
    workplace.repairServer();
    workplace.env = env;
    await workplace.hook(payload);
    expect(workplace.state[SESSION]).not.toHaveProperty('pending');
    for (const CLAUDE_CODE_CERT_STORE of [undefined, 'system', 'bundled,system']) {
      workplace.env = { ...env, CLAUDE_CODE_CERT_STORE };
      const before = requests;
      await run(['doctor'], workplace.env, '', { cwd: workplace.home });
      expect(requests).toBeGreaterThan(before);
    }
  } finally {
    server.closeAllConnections();
    server.close();
    await workplace.close();
  }
});
