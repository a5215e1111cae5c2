import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import fc from 'fast-check';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, openBrowser, WITHOUT_CHROMIUM } from '../support/browser.js';

if (!hasChromium) console.warn(WITHOUT_CHROMIUM);

const VIEW = fileURLToPath(new URL('../../preview-page/markdown-view.ts', import.meta.url));
const STYLE = fileURLToPath(new URL('../../preview-page/page.css', import.meta.url));

/** Texts that take long to parse, to draw or to lay out, or for which the stack is too small. */
const HOSTILE: readonly (readonly [name: string, text: string])[] = [
  ['a million backticks', '`'.repeat(1_000_000)],
  ['runs of backticks', '` `` ``` '.repeat(1_100)],
  ['quotes in quotes', '>'.repeat(10_000)],
  ['lists in lists', '- '.repeat(5_000)],
  ['lists in quotes', '> - '.repeat(2_500)],
  ['brackets', '['.repeat(10_000)],
  ['beginnings of links', '[a](b('.repeat(1_600)],
  ['links without an end', '[a](b "'.repeat(1_400)],
  ['all marks in turn', `${'*_[<'.repeat(500)}${'b'.repeat(8_000)}`],
  ['emphasis that nothing ends', `${'。**a'.repeat(500)}${'b'.repeat(8_000)}`],
  ['emphasis in emphasis', '*a **b ~~c '.repeat(330)],
  ['emphasis that ends all at once', `${'*a **b '.repeat(160)}${'c'.repeat(7_000)}${' b** a*'.repeat(160)}`],
  ['half of an emphasis', `${'_'.repeat(500)}${'a'.repeat(9_000)}${'_'.repeat(500)}`],
  ['rules with a letter', `${' '.repeat(5_000)}x\n${'- '.repeat(2_400)}x`],
  ['a table with 600 columns', `${'|a'.repeat(600)}\n${'|-'.repeat(600)}\n${'b\n'.repeat(3_700)}`],
  ['a table with 49 columns', `${'|a'.repeat(49)}\n${'|-'.repeat(49)}\n${'b\n'.repeat(4_900)}`],
  ['a table with 12,000 cells', `a|b\n-|-\n${'c|d\n'.repeat(6_000)}`],
  ['a table with 5,000 cells', `a|b\n-|-\n${'c|d\n'.repeat(2_490)}`],
  ['fences', '```a\n'.repeat(2_000)],
  ['lines that go on an item', `- a\n${'b\n'.repeat(4_990)}`],
  ['addresses', 'http://)'.repeat(1_250)],
  ['beginnings of HTML', '<a '.repeat(3_300)],
];

describe.skipIf(!hasChromium)('the Markdown of the preview page (needs /usr/bin/chromium)', () => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    const options = { bundle: true, write: false, outdir: '.', logLevel: 'warning' } as const;
    const [script, style] = await Promise.all([
      build({ ...options, entryPoints: [VIEW], format: 'iife', globalName: 'view' }),
      build({ ...options, entryPoints: [STYLE] }),
    ]);
    browser = await openBrowser();
    page = await browser.newPage();
    await page.addScriptTag({ content: script.outputFiles[0]?.text ?? '' });
    await page.addStyleTag({ content: style.outputFiles[0]?.text ?? '' });
  });

  afterAll(() => browser.close());

  const draw = (text: string) => page.evaluate<string>(`view.renderMarkdown(${JSON.stringify(text)}, '').outerHTML`);

  /** Draws texts on one page, and says how many milliseconds it took until they were laid out. */
  const time = (texts: readonly string[], isWhole: boolean) =>
    page.evaluate<number>(`(() => {
      const start = performance.now();
      document.body.replaceChildren(...${JSON.stringify(texts)}.map((text) => view.renderMarkdown(text, '')));
      if (${isWhole}) document.querySelector('.fold').click();
      document.body.getBoundingClientRect();
      return performance.now() - start;
    })()`);

  test.each([
    ['one\ntwo\n\nthree', '<p>one\ntwo</p><p>three</p>'],
    ['one  \ntwo\\\nthree', '<p>one\ntwo\nthree</p>'],
    ['# Title #1\ntext', '<p class="title" data-level="1">Title #1</p><p>text</p>'],
    ['#no title', '<p>#no title</p>'],
    ['a\n---\nb', '<p class="title" data-level="2">a</p><p>b</p>'],
    ['a\n\n---\nb', '<p>a</p><hr><p>b</p>'],
    [
      '```ts\nconst a = 1;\n\n  **b**\n```\nafter',
      '<pre class="code" title="ts">const a = 1;\n\n  **b**</pre><p>after</p>',
    ],
    ['````\n```\n````', '<pre class="code">```</pre>'],
    ['```\nnever closed', '<pre class="code">never closed</pre>'],
    ['> one\n> > two\n\nthree', '<blockquote><p>one</p><blockquote><p>two</p></blockquote></blockquote><p>three</p>'],
    ['- one\n  - two\n- three', '<ul><li><p>one</p><ul><li><p>two</p></li></ul></li><li><p>three</p></li></ul>'],
    [
      '3. one\n\n   more\n4) two',
      '<ol start="3"><li><p>one</p><p>more</p></li></ol><ol start="4"><li><p>two</p></li></ol>',
    ],
    ['0. none', '<ol start="0"><li><p>none</p></li></ol>'],
    [
      '- a\n  ```\n  code\n    in\n  ```\n* b',
      '<ul><li><p>a</p><pre class="code">code\n  in</pre></li></ul><ul><li><p>b</p></li></ul>',
    ],
    [
      '- [x] a\n- [ ] b',
      '<ul><li><input type="checkbox" disabled="" checked=""><p>a</p></li><li><input type="checkbox" disabled=""><p>b</p></li></ul>',
    ],
    ['steps:\n1. one\nin 2026. nothing', '<p>steps:</p><ol start="1"><li><p>one\nin 2026. nothing</p></li></ol>'],
    ['It was in\n1999. A year', '<p>It was in\n1999. A year</p>'],
    [
      '| a | b |\n|---|:-:|\n| `x` | y \\| z |\n| | 1 |\n| 2 |',
      '<div class="scrolled"><table><tr><th>a</th><th>b</th></tr><tr><td><code>x</code></td><td>y | z</td></tr><tr><td></td><td>1</td></tr><tr><td>2</td></tr></table></div>',
    ],
    ['a | b\nno rule', '<p>a | b\nno rule</p>'],
    [
      '<details><b>x</b></details>\n<!-- y -->\n\nz',
      '<p>&lt;details&gt;&lt;b&gt;x&lt;/b&gt;&lt;/details&gt;\n&lt;!-- y --&gt;</p><p>z</p>',
    ],
    [`${'> '.repeat(14)}*deep*`, `${'<blockquote>'.repeat(13)}<p>&gt; *deep*</p>${'</blockquote>'.repeat(13)}`],
    ['', ''],
  ])('%j', async (text, drawn) => expect(await draw(text)).toBe(`<div class="markdown">${drawn}</div>`));

  const link = (url: string, words = url) =>
    `<a href="${url}" title="${url}" target="_blank" rel="noopener noreferrer">${words}</a>`;

  test.each([
    [
      '**bold**, *leaning*, _leaning_ and ~~gone~~',
      '<strong>bold</strong>, <em>leaning</em>, <em>leaning</em> and <s>gone</s>',
    ],
    ['***both*** and **one *two* one**', '<em><strong>both</strong></em> and <strong>one <em>two</em> one</strong>'],
    ['`a *b*` and ``d`e`` and `never', '<code>a *b*</code> and <code>d`e</code> and `never'],
    ['这是**重点**内容', '这是<strong>重点</strong>内容'],
    ['\\*no\\* \\_ C:\\Users', '*no* _ C:\\Users'],
    ['my_file_name array[0] a * b 2 < 3', 'my_file_name array[0] a * b 2 &lt; 3'],
    ['__init__ 2*3*4', '<strong>init</strong> 2<em>3</em>4'],
    ['**open *and', '**open *and'],
    [
      '[the **docs**](https://a.example/x_(y)?q=1 "title")',
      link('https://a.example/x_(y)?q=1', 'the <strong>docs</strong>'),
    ],
    [
      'see https://a.example/x_y, (http://b.example/) and www.a.example.',
      `see ${link('https://a.example/x_y')}, (${link('http://b.example/')}) and ${link('http://www.a.example', 'www.a.example')}.`,
    ],
    ['[](http://b.example)', link('http://b.example')],
    ['[a] and [b][a]\n\n[a]: http://c', `${link('http://c', 'a')} and ${link('http://c', 'b')}</p><p>[a]: http://c`],
    ...[
      '![a picture](https://a.example/x.png)',
      '[x](javascript:alert(1))',
      '[x](JaVaScRiPt:alert(1))',
      '[x](data:text/html,y)',
      '[x](//a.example)',
      '[x](file:///etc/passwd)',
      '[x](./y.md)',
      '![x](data:image/svg+xml,y)',
      'a@b.example',
      '[no link] (x)',
    ].map((text): [string, string] => [text, text]),
    [
      'a & <img src=x onerror=y> <javascript:z> &lt; &#106;',
      'a &amp; &lt;img src=x onerror=y&gt; &lt;javascript:z&gt; &amp;lt; &amp;#106;',
    ],
  ])('%j', async (text, drawn) => expect(await draw(text)).toBe(`<div class="markdown"><p>${drawn}</p></div>`));

  test('keeps each letter of any text', async () => {
    const piece = fc.constantFrom(...'*_~`[]!\\ \nab/>#-1.<:', 'http://x', '**', '```');
    const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''));
    const lettersOf = (shown: string) => shown.replace(/[^ab]/g, '');
    const property = fc.asyncProperty(text, async (each) => {
      const words = `(() => {
        const drawn = view.renderMarkdown(${JSON.stringify(each)}, '');
        for (const code of drawn.querySelectorAll('pre[title]')) code.prepend(code.title);
        return drawn.textContent;
      })()`;
      expect(lettersOf(await page.evaluate<string>(words))).toBe(lettersOf(each));
    });
    await fc.assert(property, { examples: [['```*\na'], ['```b\na\n```\nb']] });
  });

  test('shows a text as it is if it takes long to draw', async () => {
    const plain = (text: string) => draw(text).then((drawn) => drawn.includes('<pre class="text">'));
    expect(
      await Promise.all([
        plain(`**a** ${'b'.repeat(9_994)}`),
        plain(`**a** ${'b'.repeat(9_995)}`),
        plain('*a* '.repeat(500)),
        plain(`${'*a* '.repeat(500)}_`),
        plain('|a'.repeat(49)),
        plain('|a'.repeat(50)),
        plain('>'.repeat(2_000)),
      ]),
    ).toEqual([false, true, false, true, false, true, true]);
  });

  test('a page of hostile texts is drawn at once', async () => {
    const texts = HOSTILE.map(([, text]) => text);
    expect(await time(texts, false)).toBeLessThan(1_000);
  });

  test.each(HOSTILE)('the whole of %s is drawn at once', async (_, text) => {
    expect(await time([text], true)).toBeLessThan(2_000);
  });
});
