import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  forgetOutage,
  hasAcknowledged,
  isOngoing,
  markAcknowledged,
  readOutage,
  rememberOutage,
} from '../../src/state/servers.js';
import { removeFolder } from '../support/remove-folder.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
});

afterEach(() => removeFolder(folder));

const MINUTE = 60_000;
const NOW = Date.UTC(2026, 0, 1);
const isDown = (now: number, destination = 'a') => isOngoing(readOutage(folder, destination), now);
const fileOf = (destination: string) => join(folder, 'cc-langfuse_servers', `${destination}.json`);

test('an outage is assumed to go on for two minutes, and twice as long each time that it is found again, up to 16', () => {
  let now = NOW;
  const minutes: number[] = [];
  for (let n = 0; n < 6; n += 1) {
    rememberOutage(folder, 'a', now);
    // What fails in the meantime was to be expected.
    rememberOutage(folder, 'a', now + MINUTE);
    const until = readOutage(folder, 'a')?.until ?? 0;
    minutes.push((until - now) / MINUTE);
    expect([isDown(until - 1), isDown(until)]).toEqual([true, false]);
    now = until;
  }
  expect(minutes).toEqual([2, 4, 8, 16, 16, 16]);
  expect(readOutage(folder, 'a')).toMatchObject({ since: NOW, failures: 6 });
});

test('an outage is one of its destination only, and forgotten as a whole', () => {
  rememberOutage(folder, 'a', NOW);
  expect([isDown(NOW), isDown(NOW, 'b')]).toEqual([true, false]);
  forgetOutage(folder, 'b');
  expect(isDown(NOW)).toBe(true);
  forgetOutage(folder, 'a');
  expect(isDown(NOW)).toBe(false);
  rememberOutage(folder, 'a', NOW);
  expect(readOutage(folder, 'a')).toMatchObject({ failures: 1 });
});

test('an outage is forgotten if the clock has been set back by more than it could last', () => {
  rememberOutage(folder, 'a', NOW);
  expect(isDown(NOW - MINUTE)).toBe(true);
  expect(isDown(NOW - 60 * MINUTE)).toBe(false);
  rememberOutage(folder, 'a', NOW - 60 * MINUTE);
  expect(isDown(NOW - 60 * MINUTE)).toBe(true);
});

test('only the user can read the file; one that is corrupt counts for nothing, and is replaced', () => {
  rememberOutage(folder, 'a', NOW);
  expect(statSync(fileOf('a')).mode & 0o777).toBe(0o600);
  const outage = '{"outage":{"since":"1","until":2,"failures":3}}';
  for (const text of ['', '{"until"', '[]', 'null', '{"outage":{"until":9e15}}', outage]) {
    writeFileSync(fileOf('a'), text);
    expect(readOutage(folder, 'a')).toBeUndefined();
    rememberOutage(folder, 'a', NOW);
    const { outage: kept } = JSON.parse(readFileSync(fileOf('a'), 'utf8'));
    expect(kept).toEqual({ since: NOW, until: NOW + 2 * MINUTE, failures: 1 });
  }
  expect(readdirSync(join(folder, 'cc-langfuse_servers'))).toEqual(['a.json']);
});

test('a destination has worked once it has acknowledged something, outages or not; in doubt it has', () => {
  expect(hasAcknowledged(folder, 'a')).toBe(false);
  rememberOutage(folder, 'a', NOW);
  expect(hasAcknowledged(folder, 'a')).toBe(false);
  markAcknowledged(folder, 'a');
  forgetOutage(folder, 'a');
  expect([hasAcknowledged(folder, 'a'), hasAcknowledged(folder, 'b')]).toEqual([true, false]);
  rememberOutage(folder, 'a', NOW);
  expect(hasAcknowledged(folder, 'a')).toBe(true);
  writeFileSync(fileOf('a'), '{"acknow');
  expect(hasAcknowledged(folder, 'a')).toBe(true);
});
