import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readSettings } from '../../src/config/settings.js';
import { ClaudeSession, writeFolderSettings } from '../support/claude-session.js';
import { type Environment, run, Workplace } from '../support/program.js';

const NAME = 'OTEL_RESOURCE_ATTRIBUTES';

describe('tags of resource attributes', () => {
  const tagsOf = async (value: string, more: NodeJS.ProcessEnv = {}) =>
    (await readSettings({ [NAME]: value, ...more })).tags;

  test('are the attributes that the organization has named, decoded', async () => {
    expect(await tagsOf(' department=engineering , team.id=plat%2Cform,cost_center=a%3Db ,, Ort=K%C3%B6ln')).toEqual([
      'department:engineering',
      'team.id:plat,form',
      'cost_center:a=b',
      'Ort:Köln',
    ]);
  });

  test('are not those that describe the program, the machine or the person', async () => {
    const machine = 'service.name=claude-code,host.name=x,os.type=linux,k8s.pod.name=p,user.email=me@example.com';
    expect(await tagsOf(`${machine},serviceline=a,team=b`)).toEqual(['serviceline:a', 'team:b']);
  });

  test("come after the user's own tags, and can be turned off", async () => {
    expect(await tagsOf('team=a', { LANGFUSE_TAGS: 'mine,other' })).toEqual(['mine', 'other', 'team:a']);
    expect(await tagsOf('team=a', { CC_LANGFUSE_AUTO_TAGS: 'skill' })).toEqual([]);
    expect(await tagsOf('team=a', { CC_LANGFUSE_AUTO_TAGS: 'none', LANGFUSE_TAGS: 'mine' })).toEqual(['mine']);
  });

  test('are at most twenty', async () => {
    const all = Array.from({ length: 30 }, (_, n) => `a${n}=b`).join();
    expect(await tagsOf(all)).toHaveLength(20);
  });

  test.each(['team', '=a', 'team=', 'a=b=c', 'team=%zz', `team=${'x'.repeat(196)}`])(
    'are none if one of them is bad: %s',
    async (bad) => {
      const { tags, problems } = await readSettings({ [NAME]: `good=1,${bad}` });
      expect(tags).toEqual([]);
      expect(problems.map(({ text }) => text)).toContain(
        `${NAME}: expected key=value,key=value with percent-encoded values of at most 200 characters`,
      );
    },
  );
});

describe('a hook, to which Claude Code does not pass the variable,', () => {
  let workplace: Workplace;
  let session: ClaudeSession;
  let project: string;

  beforeEach(async () => {
    workplace = await Workplace.open();
    project = join(workplace.home, 'work');
    const id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
    session = new ClaudeSession(id, workplace.transcriptOf(id), project);
    session.addTurn();
  });

  afterEach(() => workplace.close());

  const hook = (payload: object, env: Environment = {}) =>
    run(['hook'], { ...workplace.env, CLAUDE_PROJECT_DIR: project, ...env }, JSON.stringify(payload));
  const tags = () => workplace.server.roots.map(({ trace }) => trace.tags);

  test('takes it from the settings files, the strongest first', async () => {
    writeFolderSettings(workplace.home, { [NAME]: 'team=of-the-user' });
    await hook(session.payload('Stop'));
    writeFolderSettings(project, { [NAME]: 'team=of-the-project' });
    session.addTurn();
    await hook(session.payload('Stop'));
    expect(tags()).toEqual([
      ['team:of-the-user', 'claude-code'],
      ['team:of-the-project', 'claude-code'],
    ]);
  });

  test('sends a turn later with the tags that its own run had', async () => {
    workplace.server.misbehave = () => ({ status: 401 });
    await hook(session.startPayload('startup'));
    await hook(session.payload('Stop'));
    workplace.server.misbehave = () => undefined;
    writeFolderSettings(workplace.home, { [NAME]: 'team=later' });
    await hook(session.startPayload('resume'));
    session.addTurn();
    await hook(session.payload('Stop'));
    expect(tags()).toEqual([['claude-code'], ['team:later', 'claude-code']]);
  });

  test('leaves it in the settings when it is uninstalled, since Claude Code reads it, too', async () => {
    writeFolderSettings(workplace.home, { [NAME]: 'team=a', LANGFUSE_TAGS: 'mine' });
    await run(['uninstall', '--yes'], { HOME: workplace.home });
    const { env } = JSON.parse(readFileSync(join(workplace.home, '.claude', 'settings.json'), 'utf8'));
    expect(env).toEqual({ [NAME]: 'team=a' });
  });
});
