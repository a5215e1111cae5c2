import { describe, expect, test } from 'vitest';
import { withPluginOptions } from '../../src/config/plugin-options.js';

describe('an option that the user entered for the plugin', () => {
  const entered = { CLAUDE_PLUGIN_ROOT: '/p', CLAUDE_PLUGIN_OPTION_PUBLIC_KEY: 'pk-lf-entered' };

  test('wins over LANGFUSE_X, which other programs read, but not over CC_LANGFUSE_X', () => {
    expect(withPluginOptions({ ...entered, LANGFUSE_PUBLIC_KEY: 'pk-lf-app' }).CC_LANGFUSE_PUBLIC_KEY).toBe(
      'pk-lf-entered',
    );
    expect(withPluginOptions({ ...entered, CC_LANGFUSE_PUBLIC_KEY: 'pk-lf-own' }).CC_LANGFUSE_PUBLIC_KEY).toBe(
      'pk-lf-own',
    );
    // An empty variable counts as unset, as everywhere.
    expect(withPluginOptions({ ...entered, CC_LANGFUSE_PUBLIC_KEY: '' }).CC_LANGFUSE_PUBLIC_KEY).toBe('pk-lf-entered');
  });

  test('does not change the environment that was passed in', () => {
    const env: NodeJS.ProcessEnv = { ...entered };
    withPluginOptions(env);
    expect(env).toEqual(entered);
  });

  test('is ignored unless the plugin started the program', () => {
    expect(withPluginOptions({ CLAUDE_PLUGIN_OPTION_PUBLIC_KEY: 'pk-lf-entered' })).not.toHaveProperty(
      'CC_LANGFUSE_PUBLIC_KEY',
    );
  });
});
