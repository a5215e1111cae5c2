import { describe, expect, test } from 'vitest';
import { restrict } from '../../src/config/settings.js';

describe('of two values of a setting that restricts, what either forbids stays forbidden:', () => {
  test.each([
    ['CC_LANGFUSE_CAPTURE', 'full', 'metadata', 'metadata'],
    ['CC_LANGFUSE_CAPTURE', 'full', ' No_Tool_IO ', ' No_Tool_IO '],
    ['CC_LANGFUSE_CAPTURE', 'no_tool_io', 'metadata', 'metadata'],
    ['CC_LANGFUSE_CAPTURE', 'metadata', 'nonsense', 'nonsense'],
    ['CC_LANGFUSE_REDACT', 'false', 'true', 'true'],
    ['CC_LANGFUSE_MEDIA', 'true', 'false', 'false'],
    ['CC_LANGFUSE_INPUT', 'request', 'answered', 'answered'],
    ['CC_LANGFUSE_INPUT', 'request', 'turn', 'turn'],
    ['CC_LANGFUSE_MAX_CHARS', '200', '1000', '200'],
    ['CC_LANGFUSE_MAX_CHARS', 'many', '1000', '1000'],
    ['CC_LANGFUSE_MUTE', 'false', 'true', 'true'],
    ['CC_LANGFUSE_MUTE', ' False', 'yes', 'yes'],
    ['CC_LANGFUSE_EXCLUDE', '/a,~/b', '/c, /a', '/a,~/b,/c'],
    [
      'CC_LANGFUSE_REDACT_EXTRA',
      '[{"pattern":"a"}]',
      '[{"pattern":"b"},{"pattern":"a"}]',
      '[{"pattern":"a"},{"pattern":"b"}]',
    ],
    ['CC_LANGFUSE_REDACT_EXTRA', '[{"pattern":"a"}]', 'no rules', 'no rules'],
  ])('%s %j and %j', (name, one, two, strictest) => {
    expect(restrict({ [name]: one }, [{ [name]: two }])).toEqual({ [name]: strictest });
    const reversed = restrict({ [name]: two }, [{ [name]: one }])[name] ?? '';
    const inAnyOrder = (list: string) =>
      list
        .split(/[[\],]/)
        .map((item) => item.trim())
        .toSorted();
    expect(inAnyOrder(reversed)).toEqual(inAnyOrder(strictest));
  });

  test('a value that only one of them has holds, and an empty one is none', () => {
    expect(restrict({}, [{ CC_LANGFUSE_CAPTURE: 'metadata' }, { CC_LANGFUSE_CAPTURE: ' ' }])).toEqual({
      CC_LANGFUSE_CAPTURE: 'metadata',
    });
    expect(restrict({ CC_LANGFUSE_MEDIA: 'false' }, [{}])).toEqual({ CC_LANGFUSE_MEDIA: 'false' });
  });

  test('other settings are left as they are', () => {
    const env = { LANGFUSE_TAGS: 'mine', LANGFUSE_PUBLIC_KEY: 'pk' };
    expect(restrict(env, [{ LANGFUSE_TAGS: 'theirs', LANGFUSE_PUBLIC_KEY: 'other', LANGFUSE_USER_ID: 'u' }])).toEqual(
      env,
    );
  });
});
