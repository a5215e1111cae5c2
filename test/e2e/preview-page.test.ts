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

/** A browser starts slowly while all cores are busy. */
const BROWSER_MS = 60_000;
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

describe.skipIf(!hasChromium)('the preview page in a browser (needs /usr/bin/chromium)', () => {
  let browser: Browser;
  let workplace: Workplace;
  let page: Page;
  /** What the page requested, and what it wrote to the console. */
  let requests: string[];
  let messages: string[];

  beforeAll(async () => {
    browser = await openBrowser();
  }, BROWSER_MS);

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

  /** Opens the page of a transcript. */
  async function open(transcript: string): Promise<string> {
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
  const search = () => page.getByRole('searchbox');
  const matches = () => page.locator('#matches').textContent();
  const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');

  test('shows sessions, turns, the conversation, and tokens by kind', async () => {
    const file = await open(transcriptOf(TURNS));
    const nav = page.getByRole('navigation', { name: 'Sessions and turns' });
    expect(await nav.getByRole('button').count()).toBe(2);
    expect(await heading()).toBe('Turn 1completed');
    expect(await page.locator('.conversation').innerText()).toBe('user\nlook into it\nassistant\nIt has 400 lines.');
    expect(await page.locator('main .token-chart li').allInnerTexts()).toEqual([
      'input\n200\n5%',
      'cache read\n3,000\n75%',
      'output\n800\n20%',
    ]);
    expect({ requests, messages }).toEqual({ requests: [file], messages: [] });
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
        .innerText(),
    ).toBe('380 ms');
    const facts = page.locator('.turn-heading p').first();
    expect(await facts.innerText()).toContain('380 ms · 4.4 s with background agents');
    await page.keyboard.press('j');
    expect(await facts.innerText()).not.toContain('background');
  });

  test('says where the time of a turn went and what came of it, and who has given a message', async () => {
    const [path = ''] = transcriptsOf(recording('i-simple'));
    await open(path);
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    expect(await page.locator('.turn-heading p').nth(1).innerText()).toBe(
      '+3 −1; 997 ms model, 616 ms tools, 431 ms other',
    );
    await row(/^agent, Turn 3/).click();
    expect(await page.locator('#details h4').allInnerTexts()).toEqual(['user', 'Claude']);
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
    await nav.getByRole('button').nth(1).click();
    expect([await heading(), await nav.isVisible()]).toEqual(['Turn 2completed', false]);
  });

  test(
    'shows a session of 1,000 turns, with only the open turn in the page',
    async () => {
      const transcript = writeSession(workplace.projects, {
        sessionId: sessionIdOf(2),
        cwd: '/work',
        turns: 1_000,
        startsAt: Date.UTC(2026, 9, 1),
        resultChars: 2_000,
        answerChars: 2_000,
      });
      await open(transcript);
      expect(await page.locator('.turn-row').count()).toBe(1_000);
      expect(await page.locator('.row').count()).toBe(6);
      await search().fill('answer 1000');
      await page.keyboard.press('Enter');
      expect([await heading(), await matches()]).toEqual(['Turn 1000completed', '1 of 2']);
      await search().fill('npm test');
      await page.keyboard.press('Enter');
      expect(await matches()).toBe('1 of 4,000');
      expect(await page.locator('.row').count()).toBe(6);
      expect(messages).toEqual([]);
    },
    BROWSER_MS,
  );
});
