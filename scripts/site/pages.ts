/** Pages of the documentation as pages of the site. Pure: the files are arguments. */
import { dirname, join, relative } from 'node:path/posix';

const INDEX = 'docs/README.md';
const ALARMS = 'docs/operations/alarms/README.md';
/** A page of the site alone, which its command writes. */
export const GENERATED = {
  page: join('docs', 'nodes-documentation.md'),
  program: 'test/conformance/nodes-documentation/run.ts',
  text: 'Nodes, sentence by sentence',
} as const;

export interface Sources {
  /** Each page by its path from the root of the project. */
  readonly pages: ReadonlyMap<string, string>;
  /** Whether the project has this file or folder. */
  exists(path: string): boolean;
  /** Address of the project's files on a forge, with a slash at its end. Absent: files are shown as paths. */
  readonly filesUrl: string | undefined;
}

/** The page of the site: the index of a folder is `index.md`. */
export const sitePath = (page: string): string => page.replace(/(^|\/)README\.md$/, '$1index.md');

/** @returns the page of the site. @throws Error naming page and link, when a target does not exist */
export function sitePage(page: string, { pages, exists, filesUrl }: Sources): string {
  const rewritten = (whole: string, mark: string, text: string, to: string): string => {
    if (/^[a-z]+:/.test(to)) return whole;
    const [file = '', anchor] = to.split('#');
    const hash = anchor === undefined ? '' : `#${anchor}`;
    const target = file === '' ? page : join(dirname(page), decodeURIComponent(file));
    if (pages.has(target)) return `[${text}](${relativeLink(sitePath(page), sitePath(target))}${hash})`;
    if (!exists(target)) throw new Error(`${page}: ${to} does not exist`);
    if (mark === '!') return whole;
    if (filesUrl !== undefined) return `[${text}](${filesUrl}${target})`;
    return text.replaceAll('`', '') === target ? `\`${target}\`` : `${text} (\`${target}\`)`;
  };
  return outsideOfCode(pages.get(page)!, (prose) =>
    prose
      .replaceAll(/<!--[\s\S]*?-->\n*/g, '')
      .replaceAll(/(!?)\[((?:[^[\]]|\[[^[\]]*\])*)\]\(([^)\s]+)\)/g, rewritten),
  );
}

function relativeLink(from: string, to: string): string {
  const path = relative(dirname(from), to);
  return path.startsWith('.') ? path : `./${path}`;
}

/** Blocks of code stay as they are. */
function outsideOfCode(text: string, change: (prose: string) => string): string {
  return text
    .split(/(^ *```[\s\S]*?^ *```$)/m)
    .map((part, index) => (index % 2 === 1 ? part : change(part)))
    .join('');
}

interface Item {
  readonly text: string;
  readonly link?: string;
  readonly collapsed?: boolean;
  readonly items?: readonly Item[];
}

export interface Navigation {
  readonly nav: readonly Item[];
  readonly sidebar: readonly Item[];
}

/** The sections of the index by reader, with the pages that it lists, in its order. */
export function navigation(pages: ReadonlyMap<string, string>): Navigation {
  const sections = pages.get(INDEX)!.split(/^## /m).slice(1);
  const sidebar = sections.map((section) => ({
    text: section.slice(0, section.indexOf('\n')).trim(),
    collapsed: false,
    items: tablesOf(section).map((each) => ({ ...each, ...runbooks(each.link, pages) })),
  }));
  return {
    nav: [
      { text: 'Documentation', link: '/docs/' },
      { text: 'Changes', link: '/CHANGELOG' },
      ...(pages.has(GENERATED.page) ? [{ text: GENERATED.text, link: siteLink(GENERATED.page) }] : []),
    ],
    sidebar,
  };

  /** A row with one page is named by its title, one with several is a group. */
  function tablesOf(section: string): Item[] {
    return [...section.matchAll(/^\| (.*) \| (.*) \|$/gm)].flatMap(([, first = '', second = '']): Item[] => {
      const own = linksOf(INDEX, first, pages);
      if (own.length > 0) return own.map(({ link, target }) => ({ text: titleOf(pages.get(target)!), link }));
      const several = linksOf(INDEX, second, pages);
      return several.length === 0 ? [] : [{ text: first, collapsed: true, items: several.map(withoutTarget) }];
    });
  }
}

const withoutTarget = ({ text, link }: { readonly text: string; readonly link: string }): Item => ({ text, link });

/** The runbooks below the list of alarms. */
function runbooks(link: string | undefined, pages: ReadonlyMap<string, string>): Partial<Item> {
  if (link !== siteLink(ALARMS)) return {};
  const listed = linksOf(ALARMS, pages.get(ALARMS)!, pages).filter(({ target }) => dirname(target) === dirname(ALARMS));
  const first = listed.filter(({ target }, index) => listed.findIndex((each) => each.target === target) === index);
  return {
    collapsed: true,
    items: first.map(({ link: to, target }) => ({ text: titleOf(pages.get(target)!), link: to })),
  };
}

function linksOf(page: string, text: string, pages: ReadonlyMap<string, string>) {
  return [...text.matchAll(/\[([^\]]*)\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].flatMap(([, name = '', to = '']) => {
    const target = join(dirname(page), to);
    return pages.has(target) ? [{ text: name, target, link: siteLink(target) }] : [];
  });
}

const siteLink = (page: string): string => `/${sitePath(page).replace(/(index)?\.md$/, '')}`;
const titleOf = (page: string): string => /^# (.*)$/m.exec(page)?.[1]?.replaceAll('`', '') ?? '';
