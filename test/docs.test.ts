/** The documentation: every page is in the index, every link has a target, and every command that it names exists. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { repositoryRoot } from '../cdk/lib/function-names.ts';
import { headingAnchor } from '../scripts/site/anchors.ts';

const INDEX = 'docs/README.md';
const NOT_OURS = ['**/node_modules', '**/dist', '**/cdk.out', '.git', '.nodekeeper'];
const pages = globSync(['docs/**/*.md', '*.md'], { cwd: repositoryRoot }).toSorted();
const textOf = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');
const withoutCode = (text: string): string => text.replaceAll(/```.*?```/gs, '').replaceAll(/`[^`\n]*`/g, '');

/** The anchors that GitHub makes of the headings of a page. */
function anchorsOf(path: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const headings = textOf(path)
    .replaceAll(/```.*?```/gs, '')
    .matchAll(/^#{1,6} (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) => {
      const anchor = headingAnchor(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'));
      const count = seen.get(anchor) ?? 0;
      seen.set(anchor, count + 1);
      return count === 0 ? anchor : `${anchor}-${count}`;
    }),
  );
}

const sources = (): string[] =>
  globSync(['*', '**/*.{ts,tsx,cjs,mjs,yaml,sh}'], { cwd: repositoryRoot, exclude: NOT_OURS }).filter(
    (path) => /\.(ts|tsx|cjs|mjs|yaml|sh)$/.test(path) && path !== relative(repositoryRoot, import.meta.filename),
  );

interface Link {
  readonly target: string;
  readonly anchor: string;
}

/** Links inside of the repository; the target is a path from its root. */
function linksOf(path: string): Link[] {
  const targets = withoutCode(textOf(path)).matchAll(/\]\(([^)\s]+)\)/g);
  return [...targets].flatMap(([, to = '']) => {
    if (/^[a-z]+:/.test(to)) return [];
    const [file = '', anchor = ''] = to.split('#');
    return [{ target: file === '' ? path : join(dirname(path), decodeURIComponent(file)), anchor }];
  });
}

function faultOf({ target, anchor }: Link): string | undefined {
  if (!existsSync(join(repositoryRoot, target))) return `${target} does not exist`;
  if (anchor === '' || !target.endsWith('.md') || anchorsOf(target).has(anchor)) return undefined;
  return `${target} has no heading #${anchor}`;
}

describe('the documentation', () => {
  it('has only links to files and headings that exist', () => {
    const faults = pages.flatMap((page) =>
      linksOf(page)
        .map(faultOf)
        .filter((fault) => fault !== undefined)
        .map((fault) => `${page}: ${fault}`),
    );
    expect(faults).toEqual([]);
  });

  it('has a blank line before headings, and before and after tables', () => {
    const faults = pages.flatMap((page) => {
      const lines = textOf(page)
        .replaceAll(/```.*?```/gs, '')
        .split('\n');
      return lines.flatMap((line, index) => {
        const before = lines[index - 1]?.trim() ?? '';
        if (before === '' || line.trim() === '') return [];
        const isTornTable = line.trim().startsWith('|') !== before.startsWith('|');
        return isTornTable || /^#+ /.test(line) ? [`${page}: ${line}`] : [];
      });
    });
    expect(faults).toEqual([]);
  });

  it('has every page in its index, once; runbooks are in the list of alarms', () => {
    const links = linksOf(INDEX).map(({ target }) => target);
    const runbooks = linksOf('docs/operations/alarms/README.md').map(({ target }) => target);
    const isRunbook = (page: string): boolean => /alarms\/(?!README)/.test(page);
    for (const page of pages.filter((each) => each.startsWith('docs/') && each !== INDEX)) {
      const count = isRunbook(page) ? Number(runbooks.includes(page)) : links.filter((each) => each === page).length;
      expect(`${page}: ${count}`).toBe(`${page}: 1`);
    }
  });

  it('is where the code says that it is', () => {
    const faults = sources().flatMap((path) =>
      // A decision may be named by its number.
      [...textOf(path).matchAll(/\bdocs\/(?:[\w./-]*\.md|decisions\/[\w-]+)/g)]
        .map(([mention]) => mention)
        .filter(
          (mention) => !pages.some((page) => page.startsWith(mention)) && !existsSync(join(repositoryRoot, mention)),
        )
        .map((mention) => `${path}: ${mention}`),
    );
    expect(faults).toEqual([]);
  });

  it('names only symbols that the code has, where contributors begin', () => {
    const code = sources().map(textOf).join('\n');
    const symbols = [...textOf('AGENTS.md').matchAll(/`([A-Za-z_]\w+)`/g)].map(([, name = '']) => name);
    expect(symbols.filter((name) => !code.includes(name))).toEqual([]);
  });

  it('names only files and folders that exist', () => {
    const files = globSync('**/*', { cwd: repositoryRoot, exclude: NOT_OURS });
    const folders = new Set(files.filter((path) => path.includes('/')).map((path) => path.slice(0, path.indexOf('/'))));
    const exists = (path: string): boolean => files.some((each) => `/${each}`.endsWith(`/${path.replace(/\/$/, '')}`));
    const faults = pages.flatMap((page) =>
      [...textOf(page).matchAll(/`([\w./-]+)`/g)]
        .map(([, path = '']) => path)
        .filter(
          (path) => /\w\.ts$/.test(path) || (/^[\w-]+\//.test(path) && folders.has(path.slice(0, path.indexOf('/')))),
        )
        .filter((path) => !path.startsWith('agent/dist') && !exists(path))
        .map((path) => `${page}: ${path}`),
    );
    expect(faults).toEqual([]);
  });

  it('names only commands that exist', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { readonly scripts: Readonly<Record<string, string>> };
    const benches = globSync('bench/**/*.ts', { cwd: repositoryRoot }).map(textOf).join();
    const faults = pages.flatMap((page) => [
      ...[...textOf(page).matchAll(/npm run (?:-s |--silent )?([a-z][\w:-]*)/g)]
        .filter(([, name = '']) => scripts[name] === undefined)
        .map(([command]) => `${page}: ${command}`),
      ...[...textOf(page).matchAll(/npm run bench -- ([a-z][\w-]*)/g)]
        .filter(([, name = '']) => !benches.includes(`name: '${name}'`))
        .map(([command]) => `${page}: ${command}`),
    ]);
    expect(faults).toEqual([]);
  });
});
