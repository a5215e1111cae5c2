import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { hasChromium, openBrowser, WITHOUT_CHROMIUM } from '../support/browser.js';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { at, jsonLines, text, toolResult, toolUse, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { recording, transcriptsOf } from '../support/recording.js';

if (!hasChromium) console.warn(WITHOUT_CHROMIUM);

const HOSTILE = `</script><img src="http://127.0.0.1:9/x" onerror="hacked = true"><!--<script>\u2028`;
const LONG = Array.from({ length: 400 }, (_, line) => `line ${line + 1}`).join('\n');
const USAGE = { input_tokens: 100, output_tokens: 400, cache_read_input_tokens: 1_500 };

function answer(id: string, seconds: number, ...content: object[]): object {
  const message = { id, role: 'assistant', model: 'claude-opus-5', content, usage: USAGE };
  return { type: 'assistant', message, timestamp: at(seconds) };
}

/** Two turns: one with a tool that fails and a tool with much output, and one in which every text is hostile. */
const TURNS = [
  user('look into it', { uuid: 'u1', timestamp: at(0), cwd: '/work' }),
  answer(
    'm1',
    2,
    text('I look.'),
    toolUse('t1', 'Bash', { command: 'ls' }),
    toolUse('t2', 'Read', { file_path: '/a' }),
  ),
  user([toolResult('t1', 'no such folder', { is_error: true })], { timestamp: at(6) }),
  user([toolResult('t2', LONG)], { timestamp: at(4) }),
  answer('m2', 10, text('It has 400 lines.')),
  user(`and this: ${HOSTILE}`, { uuid: 'u2', timestamp: at(20) }),
  answer('m3', 22, text(HOSTILE), toolUse('t3', 'Read', { file_path: HOSTILE })),
  user([toolResult('t3', `needle ${HOSTILE}`)], { timestamp: at(23) }),
  answer('m4', 24, text('done')),
];

const TITLE = { type: 'ai-title', aiTitle: 'Round </title><b>once' };
const ALLOWED = { decision: 'accept', source: 'user_temporary', grantScope: 'once' };
const PATCH = {
  oldStart: 1,
  oldLines: 2,
  newStart: 1,
  newLines: 2,
  lines: [' hello', '-world', '--- comment', '+there'],
};
const EDIT = { file_path: '/w/a.txt', old_string: 'hello\nworld', new_string: 'hello\nthere\nagain' };
const COMMIT = { commit: { sha: '1a2b3c4', kind: 'committed' }, pr: { url: 'https://github.com/octo/demo/pull/12' } };

/** A turn that asks a person, edits a file and commits it, and one that fails. */
const WORK = [
  user('round once', { uuid: 'u1', timestamp: at(0), cwd: '/work' }),
  TITLE,
  answer('m1', 2, toolUse('t1', 'Edit', EDIT), toolUse('t2', 'WebFetch', { url: 'https://a.example' })),
  user([toolResult('t1', 'Updated.')], {
    timestamp: at(3),
    toolUseResult: { filePath: '/w/a.txt', structuredPatch: [PATCH] },
  }),
  user([toolResult('t2', 'fetched')], {
    timestamp: at(9),
    permissionDecision: ALLOWED,
    toolUseResult: { durationMs: 1_000 },
  }),
  answer('m2', 10, toolUse('t3', 'Bash', { command: 'git commit' })),
  user([toolResult('t3', 'committed')], { timestamp: at(11), toolUseResult: { stdout: '', gitOperation: COMMIT } }),
  answer('m3', 12, text('It rounds once.')),
  user('and the tests?', { uuid: 'u2', timestamp: at(20) }),
  answer('m4', 22, toolUse('t4', 'Bash', { command: 'npm test' })),
  user([toolResult('t4', 'Exit code 7\nno', { is_error: true })], { timestamp: at(24) }),
  answer('m5', 26, text('They fail.')),
];

describe.skipIf(!hasChromium)('the preview page in a browser (needs /usr/bin/chromium)', () => {
  let browser: Browser;
  let workplace: Workplace;
  let page: Page;
  /** What the page requested, and what it wrote to the console. */
  let requests: string[];
  let messages: string[];

  beforeAll(async () => {
    browser = await openBrowser();
  });

  afterAll(() => browser.close());

  beforeEach(async () => {
    workplace = await Workplace.open();
    page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
    requests = [];
    messages = [];
    page.on('request', (request) => requests.push(request.url()));
    page.on('console', (message) => messages.push(message.text()));
    page.on('pageerror', (error) => messages.push(error.message));
  });

  afterEach(async () => {
    await page.close();
    await workplace.close();
  });

  /** Opens the page of a transcript, at the first turn. */
  async function open(transcript: string): Promise<string> {
    const file = await openStart(transcript);
    if ((await page.locator('.turn-row.overview').count()) > 0) await page.keyboard.press('j');
    return file;
  }

  /** Opens the page of a transcript. With several turns it begins with an overview. */
  async function openStart(transcript: string): Promise<string> {
    const file = join(workplace.home, 'out.html');
    const { exitCode, stderr } = await run(['preview', transcript, '--html', file], { HOME: workplace.home });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    await page.goto(`file://${file}`);
    return `file://${file}`;
  }

  function transcriptOf(lines: readonly object[]): string {
    const path = join(workplace.projects, '-work', `${sessionIdOf(1)}.jsonl`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, jsonLines(lines));
    return path;
  }

  const heading = () => page.getByRole('heading', { level: 1 }).textContent();
  const row = (name: RegExp) => page.getByRole('treeitem', { name });
  const details = () => page.getByRole('complementary', { name: 'Details' });
  const card = (title: string) => page.locator('.card', { has: page.getByRole('heading', { name: title }) });
  const search = () => page.getByRole('searchbox');
  const matches = () => page.locator('#matches').textContent();
  const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');

  test('shows sessions, turns, the conversation, and tokens by kind', async () => {
    const file = await open(transcriptOf(TURNS));
    const nav = page.getByRole('navigation', { name: 'Sessions and turns' });
    expect(await nav.getByRole('button').allInnerTexts()).toEqual([
      'Overview',
      '1\nlook into it\n✗ 1\n10.0 s',
      `2\nand this: ${HOSTILE}\n4.0 s`,
    ]);
    expect(await heading()).toBe('Turn 1completed');
    expect(inOneLine(await page.locator('.conversation').innerText())).toBe(
      'user look into it assistant It has 400 lines.',
    );
    expect(await card('Tokens').locator('li').allInnerTexts()).toEqual([
      'input\n200\n5%',
      'cache read\n3,000\n75%',
      'output\n800\n20%',
    ]);
    expect({ requests, messages }).toEqual({ requests: [file], messages: [] });
  });

  test('begins with what the session took and what came of it, turn by turn', async () => {
    await openStart(transcriptOf(WORK));
    expect(await page.title()).toBe('Round </title><b>once – cc-langfuse preview');
    expect(await page.locator('.turn-heading').innerText()).toMatch(
      /^Round <\/title><b>once\n\n?\d{4}-\d\d-\d\d \d\d:\d\d · 2 turns · \/work$/,
    );
    const parts = async (title: string) => (await card(title).locator('li').allInnerTexts()).map(inOneLine);
    expect(await parts('Time')).toEqual(['model 8.0 s 44%', 'tools 4.0 s 22%', 'people 6.0 s 33%']);
    expect(await parts('Tokens')).toEqual(['input 500 5%', 'cache read 7,500 75%', 'output 2,000 20%']);
    expect((await page.getByRole('row').allInnerTexts()).map(inOneLine)).toEqual([
      'Turn Time Tokens Result',
      '1 round once 12.0 s 6,000 +1 −2, commit 1a2b3c4',
      '2 and the tests? 6.0 s 4,000',
    ]);
    const widths = await page
      .getByRole('row')
      .locator('.share-bar i')
      .evaluateAll((all) => all.map((each) => `${each.dataset.kind} ${each.style.width}`));
    expect(widths).toEqual([
      'model_ms 33.333%',
      'tool_ms 16.667%',
      'person_ms 50%',
      'model_ms 33.333%',
      'tool_ms 16.667%',
    ]);
    await page.getByRole('button', { name: 'Turn 2: and the tests?' }).click();
    expect(await heading()).toBe('Turn 2completed');
    await page.getByRole('button', { name: 'Overview' }).click();
    expect(await heading()).toBe('Round </title><b>once');
    await page.keyboard.press('j');
    expect(await page.locator('.turn-heading').innerText()).toMatch(/\n\+1 −2, commit 1a2b3c4$/);
    const coloured = await page.locator('.turn-heading [data-change]').evaluateAll((all) => {
      return all.map((each) => [each.dataset.change, each.textContent]);
    });
    expect(coloured).toEqual([
      ['added', '+1'],
      ['removed', '−2'],
    ]);
    expect(messages).toEqual([]);
  });

  test('needs no overview for one turn, and names it by its prompt', async () => {
    await openStart(transcriptOf(TURNS.slice(0, 6)));
    expect([await heading(), await page.title()]).toEqual(['Turn 1completed', 'look into it – cc-langfuse preview']);
    expect(await page.getByRole('button', { name: 'Overview' }).count()).toBe(0);
  });

  test('says what is known of a call before its input, and folds the fields as they are sent', async () => {
    await open(transcriptOf(WORK));
    const facts = async (name: RegExp) => {
      await row(name).click();
      return (await details().locator('.fact-list > div').allInnerTexts()).map(inOneLine);
    };
    expect(await facts(/^tool, WebFetch/)).toEqual([
      'start +2.0 s',
      'duration 7.0 s',
      'permission accept by user temporary (once)',
      'waited for a person 6.0 s',
    ]);
    const metadata = details().locator('.metadata');
    expect(await metadata.innerText()).toMatch(/^Metadata\s*5 fields$/);
    await metadata.locator('summary').click();
    expect(await metadata.innerText()).toContain('waited_ms\n6000');
    expect(await facts(/^tool, Edit/)).toEqual(['start +2.0 s', 'duration 1.0 s', 'result +1 −2', 'files changed 1']);
    expect(await facts(/^agent, Turn 1/)).toEqual([
      'start +0 ms',
      'duration 12.0 s',
      'result +1 −2, commit 1a2b3c4',
      'context 1,600 tokens',
      'tool calls 3',
    ]);
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    expect(await facts(/^tool, Bash, npm test/)).toEqual(['start +2.0 s', 'duration 2.0 s', 'exit code 7']);
  });

  test('draws what an edit changed, and what it was asked to change', async () => {
    await open(transcriptOf(WORK));
    await row(/^tool, Edit/).click();
    const lines = (place: number) =>
      details()
        .locator('.diff')
        .nth(place)
        .locator('span')
        .evaluateAll((all) => all.map((each) => [each.dataset.change, each.textContent]));
    expect(await lines(0)).toEqual([
      [undefined, ' hello\n'],
      ['removed', '-world\n'],
      ['added', '+there\n'],
      ['added', '+again\n'],
    ]);
    expect(await lines(1)).toEqual([
      ['place', '--- /w/a.txt\n'],
      ['place', '+++ /w/a.txt\n'],
      ['place', '@@ -1,2 +1,2 @@\n'],
      [undefined, ' hello\n'],
      ['removed', '-world\n'],
      ['removed', '--- comment\n'],
      ['added', '+there\n'],
    ]);
    expect(await details().locator('.result > .text').innerText()).toBe('Updated.');
    const colours =
      "new Set([...document.querySelectorAll('.diff span')].map((each) => getComputedStyle(each).color)).size";
    expect(await page.evaluate(colours)).toBe(4);
    await search().fill('again');
    await page.keyboard.press('Enter');
    expect(await details().locator('.diff mark').allInnerTexts()).toContain('again');
  });

  test('draws the Markdown of answers, and shows prompts as they were typed', async () => {
    const markdown = [
      '## Done\n\nIt **rounds** `total()` once, see [the docs](https://a.example/x?a=1&b=2).',
      '1. one\n2. two\n   - three\n\n> quoted\n\n| a | b |\n|---|---|\n| 1 | *2* |',
      '```ts\nconst a = "<b>";\n```\n\n```diff\n-old\n+new\n```',
    ].join('\n\n');
    await open(
      transcriptOf([user('**not** `drawn`', { uuid: 'u1', timestamp: at(0) }), answer('m1', 2, text(markdown))]),
    );
    expect(await page.locator('[data-role=user] .text').innerHTML()).toBe('**not** `drawn`');
    expect(await page.locator('[data-role=assistant] .markdown').innerHTML()).toBe(
      [
        '<p class="title" data-level="2">Done</p>',
        '<p>It <strong>rounds</strong> <code>total()</code> once, see ',
        '<a href="https://a.example/x?a=1&amp;b=2" title="https://a.example/x?a=1&amp;b=2" target="_blank"',
        ' rel="noopener noreferrer">the docs</a>.</p>',
        '<ol start="1"><li><p>one</p></li><li><p>two</p><ul><li><p>three</p></li></ul></li></ol>',
        '<blockquote><p>quoted</p></blockquote>',
        '<div class="scrolled"><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td><em>2</em></td></tr></table></div>',
        '<pre class="code" title="ts">const a = "&lt;b&gt;";</pre>',
        '<pre class="diff"><span data-change="removed">-old\n</span><span data-change="added">+new\n</span></pre>',
      ].join(''),
    );
    // The marks of Markdown can be searched, too.
    await search().fill('**rounds**');
    await page.keyboard.press('Enter');
    expect(await matches()).toBe('1 of 2');
    expect(await page.locator('.conversation mark').allInnerTexts()).toEqual(['**rounds**']);
  });

  test('shows hostile Markdown as text, and links only to the web', async () => {
    const hostile = [
      '[a](javascript:hacked=1) [b](JAVASCRIPT:hacked=1) [c](data:text/html,<script>hacked=1</script>) [d](//a.example)',
      '![x](http://127.0.0.1:9/x.png) <img src=http://127.0.0.1:9/y onerror=hacked=1>',
      '<script>hacked=1</script><svg onload=hacked=1> &lt;script&gt; &#106;avascript:',
      '[e](https://a.example/"onmouseover="hacked=1) <a href="javascript:hacked=1">f</a> <javascript:hacked=1>',
    ];
    const file = await open(
      transcriptOf([user('x', { uuid: 'u1', timestamp: at(0) }), answer('m1', 2, text(hostile.join('\n')))]),
    );
    const drawn = page.locator('[data-role=assistant] .markdown');
    expect((await drawn.innerText()).split(/\n+/)).toEqual([
      ...hostile.slice(0, 3),
      'e <a href="javascript:hacked=1">f</a> <javascript:hacked=1>',
    ]);
    const kinds = await drawn.locator('*').evaluateAll((all) => all.map((each) => each.tagName).join(' '));
    expect(kinds).toBe('P A P P A');
    expect(await drawn.locator('a').evaluateAll((all) => all.map((each) => each.getAttribute('href')))).toEqual([
      'http://127.0.0.1:9/y',
      'https://a.example/"onmouseover="hacked=1',
    ]);
    expect(await page.evaluate('typeof hacked')).toBe('undefined');
    expect({ requests, messages }).toEqual({ requests: [file], messages: [] });
  });

  test.each([
    ['a million backticks', '`'.repeat(1_000_000)],
    ['quotes in quotes', `${'>'.repeat(9_000)} deep`],
    ['a table of 5,000 cells', `a|b\n-|-\n${'c|d\n'.repeat(2_490)}`],
  ])('draws %s at once', async (_, markdown) => {
    await open(transcriptOf([user('x', { uuid: 'u1', timestamp: at(0) }), answer('m1', 2, text(markdown))]));
    const start = performance.now();
    await page.getByRole('button', { name: /^Show all/ }).click();
    expect(await page.getByRole('button', { name: 'Show less' }).isVisible()).toBe(true);
    expect(performance.now() - start).toBeLessThan(5_000);
    expect(messages).toEqual([]);
  });

  test('draws bars to the scale of the turn, in lanes by type, with errors marked', async () => {
    await open(transcriptOf(TURNS));
    const bar = row(/Bash/).locator('.time');
    expect(await bar.getAttribute('style')).toBe('left: 20%; width: 40%;');
    expect(await bar.getAttribute('data-level')).toBe('ERROR');
    expect(await row(/Bash/).innerText()).toContain('ERROR');
    const lanes = await page
      .locator('.lane')
      .evaluateAll((all) => all.map((lane) => [lane.firstChild?.textContent, lane.querySelectorAll('.track').length]));
    // The two tools ran side by side.
    expect(lanes).toEqual([
      ['generations', 1],
      ['tools', 2],
    ]);
  });

  test('limits the height of a lane with hundreds of parallel tools', async () => {
    const calls = Array.from({ length: 300 }, (_, place) => `t${place}`);
    await open(
      transcriptOf([
        user('all at once', { uuid: 'u1', timestamp: at(0) }),
        answer('m1', 2, ...calls.map((id) => toolUse(id, 'Read', { file_path: id }))),
        ...calls.map((id) => user([toolResult(id, 'ok')], { timestamp: at(9) })),
      ]),
    );
    const lane = page.locator('.lane', { hasText: 'tools' });
    expect(await lane.locator('.time').count()).toBe(300);
    expect((await lane.boundingBox())?.height).toBeLessThan(200);
    await lane.locator('.time').last().click();
    expect(await details().textContent()).toContain('t299');
  });

  test('shows what a subagent did below its call, and the subagent as one bar in a lane', async () => {
    const [path = ''] = transcriptsOf(recording('p-agentfg'));
    await open(path);
    const levels = await page.getByRole('treeitem').evaluateAll((rows) => rows.map((each) => each.ariaLevel));
    expect(levels).toEqual(['1', '2', '3', '4', '5', '6', '5', '6', '5', '2']);
    expect(await page.locator('.lane', { hasText: 'subagents' }).locator('.time').count()).toBe(1);
    expect(messages).toEqual([]);
  });

  test('shows what a session and its turns cost by the account of Claude Code', async () => {
    const [path = ''] = transcriptsOf(recording('q-continue'));
    await open(path);
    const facts = page.locator('.session .facts');
    expect(await facts.innerText()).toMatch(/ · 3 turns · \$0\.0181$/);
    const shown = [];
    for (let turn = 1; turn <= 3; turn += 1) {
      const text = await page.locator('.turn-heading p').first().innerText();
      shown.push(/\$[\d.]+/.exec(text)?.[0]);
      await page.keyboard.press('j');
    }
    expect(shown).toEqual(['$0.0041', '$0.0095', '$0.0045']);
  });

  test('says everywhere how long a turn took, and once how long with its background agents', async () => {
    const [path = ''] = transcriptsOf(recording('i-agentbg2'));
    await open(path);
    expect(await page.locator('.turn-row .duration').first().innerText()).toBe('380 ms');
    expect(
      await row(/^agent, Turn 1/)
        .locator('.duration')
        .textContent(),
    ).toBe('380 ms');
    expect(await page.locator('.turn-heading p').first().innerText()).toContain(
      '380 ms · 4.4 s with background agents',
    );
    await page.keyboard.press('j');
    expect(await page.locator('.turn-heading p').first().innerText()).not.toContain('background');
  });

  test('titles a message by who has given it', async () => {
    const [path = ''] = transcriptsOf(recording('i-simple'));
    await open(path);
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await row(/^agent, Turn 3/).click();
    expect(await page.locator('#details .message > h4').allInnerTexts()).toEqual(['user', 'Claude']);
  });

  test('keeps a legend of the kinds where the rows have no room for their names', async () => {
    await open(transcriptOf(TURNS));
    const legend = page.locator('.legend');
    expect(await legend.isVisible()).toBe(false);
    for (const width of [900, 400]) {
      await page.setViewportSize({ width, height: 700 });
      expect(await legend.locator('.kind').allInnerTexts()).toEqual(['agent', 'generation', 'tool']);
      expect(await legend.isVisible()).toBe(true);
      const colours = (part: string) =>
        page.evaluate(
          `getComputedStyle(document.querySelector('${part} .kind[data-type="tool"]'), '::before').backgroundColor`,
        );
      expect(await colours('.legend')).toBe(await colours('.row'));
    }
  });

  test('shows the details of an observation, with long texts folded', async () => {
    await open(transcriptOf(TURNS));
    expect(await details().isVisible()).toBe(false);
    await row(/Read/).click();
    expect(await details().innerText()).toContain('/a');
    expect(await details().innerText()).not.toContain('line 200');
    await details().getByRole('button', { name: 'Show all 3,491 characters' }).click();
    expect(await details().innerText()).toContain('line 200');
    await details().getByRole('button', { name: 'Show less' }).click();
    expect(await details().innerText()).not.toContain('line 200');
    await details().getByRole('button', { name: 'Close' }).click();
    expect(await details().isVisible()).toBe(false);
  });

  test('searches names, inputs and outputs, and moves between the matches', async () => {
    await open(transcriptOf(TURNS));
    await page.keyboard.press('/');
    await page.keyboard.type('LINE 399');
    await page.keyboard.press('Enter');
    expect(await matches()).toBe('1 of 1');
    // The fold would hide it.
    expect(await details().locator('mark').allInnerTexts()).toEqual(['line 399']);
    await search().fill('needle');
    await page.keyboard.press('Enter');
    expect([await heading(), await matches()]).toEqual(['Turn 2completed', '1 of 2']);
    await page.keyboard.press('Enter');
    expect(await matches()).toBe('2 of 2');
    await page.keyboard.press('Shift+Enter');
    expect(await matches()).toBe('1 of 2');
    expect(await details().locator('mark').first().innerText()).toBe('needle');
    await search().fill('no such words');
    await page.keyboard.press('Enter');
    expect(await matches()).toBe('no matches');
    await page.keyboard.press('Escape');
    expect([await search().inputValue(), await matches(), await page.locator('mark').count()]).toEqual(['', '', 0]);
  });

  test('shows hostile content as text, in every field', async () => {
    const file = await open(transcriptOf(TURNS));
    await page.keyboard.press('j');
    expect(await page.locator('.conversation').innerText()).toContain(HOSTILE.slice(0, -1));
    await search().fill('onerror');
    for (let match = 1; match <= 4; match += 1) {
      await page.keyboard.press('Enter');
      expect(await details().innerText()).toContain('<img src="http://127.0.0.1:9/x" onerror="hacked = true">');
    }
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.evaluate('typeof hacked')).toBe('undefined');
    expect({ requests, messages }).toEqual({ requests: [file], messages: [] });
  });

  test('blocks every request, even one by a script in the page', async () => {
    await open(transcriptOf(TURNS));
    const url = JSON.stringify(`${workplace.server.url}/x`);
    const tried = await page.evaluate(`(async () => {
      new Image().src = ${url};
      document.body.append(Object.assign(document.createElement('iframe'), { src: ${url} }));
      navigator.sendBeacon(${url});
      return fetch(${url}).then(() => 'answered', () => 'refused');
    })()`);
    expect(tried).toBe('refused');
    expect(workplace.server.requests).toEqual([]);
    expect(messages).not.toEqual([]);
    expect(messages.filter((message) => !message.includes('Content Security Policy'))).toEqual([]);
  });

  test('can be used with the keyboard alone', async () => {
    await open(transcriptOf(TURNS));
    const focused = () =>
      page.evaluate('document.activeElement.getAttribute("aria-label") ?? document.activeElement.className');
    await page.keyboard.press('j');
    expect([await heading(), await focused()]).toEqual(['Turn 2completed', 'turn-row']);
    await page.keyboard.press('ArrowUp');
    expect(await heading()).toBe('Turn 1completed');
    await page.keyboard.press('Enter');
    expect(await focused()).toMatch(/^agent, Turn 1/);
    await page.keyboard.press('j');
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toMatch(/^tool, Bash, ls, ERROR/);
    await page.keyboard.press('Enter');
    expect(await details().innerText()).toContain('no such folder');
    await page.keyboard.press('j');
    expect(await details().innerText()).toContain('line 1');
    await page.keyboard.press('Escape');
    expect(await details().isVisible()).toBe(false);
    await page.keyboard.press('Escape');
    expect(await focused()).toBe('turn-row');
    expect(await page.locator('.turn-row[tabindex="0"], .row[tabindex="0"]').count()).toBe(2);
    await page.keyboard.press('?');
    expect(await page.getByRole('dialog', { name: 'Keyboard' }).isVisible()).toBe(true);
    await page.keyboard.press('Escape');
    expect(await page.getByRole('dialog').isVisible()).toBe(false);
    expect(messages).toEqual([]);
  });

  test('follows the light or dark theme of the system until the user switches it', async () => {
    await open(transcriptOf(TURNS));
    const light = await background();
    await page.emulateMedia({ colorScheme: 'dark' });
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.getByRole('button', { name: 'Switch between dark and light' }).click();
    expect(await background()).toBe(light);
    await page.keyboard.press('t');
    expect(await background()).toBe(dark);
  });

  test.each([400, 1280])('fits a window of %i pixels with any content', async (size) => {
    const long = 'word'.repeat(100);
    const wide = `${long}\n\n\`${long}\`\n\n|${`${long}|`.repeat(8)}\n|${'-|'.repeat(8)}\n\n- ${long}`;
    await page.setViewportSize({ width: size, height: 700 });
    await openStart(
      transcriptOf([
        ...WORK,
        user(long, { uuid: 'u3', timestamp: at(30), cwd: `/${long}` }),
        answer('m6', 31, text(wide), toolUse('t5', 'Edit', { file_path: long, old_string: long, new_string: wide })),
        user([toolResult('t5', `${long}\n\n\`\`\`diff\n-${long}\n\`\`\``)], { timestamp: at(32) }),
        answer('m7', 33, text(`\`\`\`\n${long}\n\`\`\``)),
      ]),
    );
    const overflowing = () =>
      page.evaluate(
        "[document.documentElement, ...document.querySelectorAll('main, nav, #details')].filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.id)",
      );
    expect(await overflowing()).toEqual([]);
    await page.getByRole('button', { name: /^Turn 3/ }).click();
    expect(await overflowing()).toEqual([]);
    for (const name of [/^generation/, /^tool, Edit/]) {
      await row(name).first().click();
      expect(await overflowing()).toEqual([]);
      await page.keyboard.press('Escape');
    }
  });

  test('fits a window of 400 pixels, in which a button shows the turns', async () => {
    await page.setViewportSize({ width: 400, height: 700 });
    await open(transcriptOf(TURNS));
    const width = () => page.evaluate('document.documentElement.scrollWidth');
    expect(await width()).toBe(400);
    await page.getByRole('searchbox').fill('turn');
    await page.getByRole('button', { name: 'Next match' }).click();
    expect(await width()).toBe(400);
    const nav = page.getByRole('navigation');
    expect(await nav.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Turns' }).click();
    await nav.getByRole('button').nth(2).click();
    expect([await heading(), await nav.isVisible()]).toEqual(['Turn 2completed', false]);
  });

  test('shows a session of 1,000 turns, with only the open turn in the page', async () => {
    const transcript = writeSession(workplace.projects, {
      sessionId: sessionIdOf(2),
      cwd: '/work',
      turns: 1_000,
      startsAt: Date.UTC(2026, 9, 1),
      resultChars: 2_000,
      answerChars: 2_000,
    });
    await open(transcript);
    expect(await page.locator('.turn-row:not(.overview)').count()).toBe(1_000);
    expect(await page.locator('.row').count()).toBe(6);
    await search().fill('answer 1000');
    await page.keyboard.press('Enter');
    expect([await heading(), await matches()]).toEqual(['Turn 1000completed', '1 of 2']);
    await search().fill('npm test');
    await page.keyboard.press('Enter');
    expect(await matches()).toBe('1 of 4,000');
    expect(await page.locator('.row').count()).toBe(6);
    expect(messages).toEqual([]);
  });
});

function inOneLine(shown: string): string {
  return shown.replace(/\s+/g, ' ').trim();
}
