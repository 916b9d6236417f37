import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { folderForTest } from '../../test/support/folder-for-test.ts';
import { faultsOfSite } from './links.ts';
import { navigation, type Sources, sitePage, sitePath } from './pages.ts';

const FILES = ['shared/rule.ts', 'examples', 'guides/picture.png'];
const pageOf = (text: string, filesUrl?: string): string => {
  const pages = new Map([
    ['guides/a/README.md', text],
    ['guides/b.md', '# B'],
    ['README.md', '# Project'],
  ]);
  const sources: Sources = { pages, exists: (path) => FILES.includes(path), filesUrl };
  return sitePage('guides/a/README.md', sources);
};

describe('a page of the site', () => {
  it('is the index of its folder', () => {
    expect([sitePath('README.md'), sitePath('guides/a/README.md'), sitePath('guides/b.md')]).toEqual([
      'index.md',
      'guides/a/index.md',
      'guides/b.md',
    ]);
  });

  it('links to other pages and their headings, an index by its own name', () => {
    expect(pageOf('[b](../b.md#one) and [it](../../README.md), [above](#here), [AWS](https://aws.example/x)')).toBe(
      '[b](../b.md#one) and [it](../../index.md), [above](./index.md#here), [AWS](https://aws.example/x)',
    );
  });

  it('links to a file of the project on its forge, or names its path', () => {
    const text = 'See [the rule](../../shared/rule.ts) and [`examples`](../../examples).';
    expect(pageOf(text, 'https://forge.example/blob/main/')).toBe(
      'See [the rule](https://forge.example/blob/main/shared/rule.ts) and ' +
        '[`examples`](https://forge.example/blob/main/examples).',
    );
    expect(pageOf(text)).toBe('See the rule (`shared/rule.ts`) and `examples`.');
  });

  it('keeps pictures, code and texts of links over two lines, and no comment', () => {
    const text = '<!-- not-yet -->\n\n![A](../picture.png) [two\nlines](../b.md)\n\n```sh\necho "[x](y.md)"\n```\n';
    expect(pageOf(text)).toBe('![A](../picture.png) [two\nlines](../b.md)\n\n```sh\necho "[x](y.md)"\n```\n');
  });

  it('has no link to what does not exist', () => {
    expect(() => pageOf('[missing](missing.md)')).toThrow('guides/a/README.md: missing.md does not exist');
  });
});

describe('the navigation', () => {
  const pages = new Map([
    [
      'docs/README.md',
      '# D\n\n## I run it\n\n| page | content |\n|---|---|\n| [volumes.md](volumes.md) | x |\n' +
        '| [alarms](operations/alarms/README.md) | y |\n\n## I change it\n\n| about | decisions |\n|---|---|\n' +
        '| tables | [layout](decisions/0001-store-layout.md), [versions](decisions/0002-resource-version-and-watch.md) |\n',
    ],
    ['docs/volumes.md', '# One `machine`\n'],
    [
      'docs/operations/alarms/README.md',
      '# Alarms\n\n| [late](marks-late.md) | [volumes](../../volumes.md) |\n| [late](marks-late.md) | |\n',
    ],
    ['docs/operations/alarms/marks-late.md', '# Marks are late\n'],
    ['docs/decisions/0001-store-layout.md', '# 1\n'],
    ['docs/decisions/0002-resource-version-and-watch.md', '# 2\n'],
  ]);

  it('has the sections of the index, pages by their titles, runbooks below the alarms, decisions by subject', () => {
    expect(navigation(pages).sidebar).toEqual([
      {
        text: 'I run it',
        collapsed: false,
        items: [
          { text: 'One machine', link: '/docs/volumes' },
          {
            text: 'Alarms',
            link: '/docs/operations/alarms/',
            collapsed: true,
            items: [{ text: 'Marks are late', link: '/docs/operations/alarms/marks-late' }],
          },
        ],
      },
      {
        text: 'I change it',
        collapsed: false,
        items: [
          {
            text: 'tables',
            collapsed: true,
            items: [
              { text: 'layout', link: '/docs/decisions/0001-store-layout' },
              { text: 'versions', link: '/docs/decisions/0002-resource-version-and-watch' },
            ],
          },
        ],
      },
    ]);
  });

  it('of this project has every page of the index', () => {
    const index = readFileSync(fileURLToPath(new URL('../../docs/README.md', import.meta.url)), 'utf8');
    const listed = [...index.matchAll(/\]\(([^)]*\.md)\)/g)].map(([, to = '']) => join('docs', to));
    const own = new Map(listed.map((page) => [page, `# ${page}\n`]));
    const text = JSON.stringify(navigation(new Map([...own, ['docs/README.md', index]])));
    const tables = listed.filter((page) => page.startsWith('docs/'));
    expect(tables.filter((page) => !text.includes(`"/${sitePath(page).replace(/(index)?\.md$/, '')}"`))).toEqual([]);
    expect(tables.length).toBeGreaterThan(60);
  });
});

it('the built site has no dead link or anchor, and loads nothing from another host', () => {
  const folder = folderForTest();
  const files = {
    'index.html': '<a href="/base/docs/">d</a><a href="/base/docs/b.html#x">b</a><a href="https://aws.example">a</a>',
    'docs/index.html': '<a href="../missing.html">g</a><a href="/index.html">outside</a><a href="b.html#no">n</a>',
    'docs/b.html': '<h1 id="x">X</h1><script src="https://cdn.example/x.js"></script><img src="/base/a.png">',
    'style.css': '@font-face { src: url(https://fonts.example/a.woff2) }',
    'a.png': '',
  };
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  expect(faultsOfSite(folder, '/base/').toSorted()).toEqual([
    'docs/b.html: https://cdn.example/x.js is loaded from another host',
    'docs/index.html: ../missing.html does not exist',
    'docs/index.html: /index.html does not exist',
    'docs/index.html: b.html#no has no heading',
    'style.css: https://fonts.example/a.woff2 is loaded from another host',
  ]);
});
