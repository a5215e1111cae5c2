import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { takeNotice } from '../../src/commands/hook/credential-notice.js';
import { addPluginOptions } from '../../src/config/plugin-options.js';
import { hasDestination, readSettings, SECRETS_OF_SERVERS } from '../../src/config/settings.js';
import { SETTING_NAMES, SETTINGS } from '../../src/config/settings-table.js';
import { DESTINATIONS } from '../support/destinations.js';
import { removeFolder } from '../support/remove-folder.js';

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
});

afterEach(() => removeFolder(home));

describe.each(Object.entries(DESTINATIONS))('the destination %s', (kind, env) => {
  test('is found by all that ask for a destination before the settings are read', async () => {
    expect((await readSettings(env)).destination?.kind).toBe(kind);
    expect(hasDestination(env)).toBe(true);
    expect(takeNotice({ ...env, CC_LANGFUSE_STATE_DIR: home }, 'session')).toBeUndefined();
  });

  test('is not replaced by the keys that the user entered for the plugin', () => {
    expect(addPluginOptions(env, { PUBLIC_KEY: 'of the plugin' }).CC_LANGFUSE_PUBLIC_KEY).toBeUndefined();
  });
});

test('each setting that is a secret belongs to a server', () => {
  const secrets = SETTING_NAMES.filter((name) => SETTINGS[name].kind === 'secret');
  expect(SECRETS_OF_SERVERS.flatMap(([, names]) => names).toSorted()).toEqual(secrets.toSorted());
});
