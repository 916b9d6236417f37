/**
 * The page as three files. A clone builds its script when a browser first asks for it, because nothing generated is
 * committed. The published package has it.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { ConsoleError } from './console-access.ts';

export interface PageFile {
  readonly contentType: string;
  /** Compressed with gzip. */
  readonly bytes: Buffer;
}

export const PAGE_PATHS: ReadonlySet<string> = new Set(['/', '/console.css', '/console.js']);

/** By path. */
export type PageFiles = ReadonlyMap<string, PageFile>;

const PAGE = fileURLToPath(new URL('../page/', import.meta.url));
const BUILT_SCRIPT = `${PAGE}console.js`;
const GZIP_LEVEL = 9;

/** @throws ConsoleError 500 without the bundler, which is not a dependency of a deployment */
export async function buildPageFiles(): Promise<PageFiles> {
  const script = existsSync(BUILT_SCRIPT) ? await readFile(BUILT_SCRIPT) : await bundlePage();
  const file = (contentType: string, content: Uint8Array): PageFile => ({
    contentType: `${contentType}; charset=utf-8`,
    bytes: gzipSync(content, { level: GZIP_LEVEL }),
  });
  return new Map([
    ['/', file('text/html', await readFile(`${PAGE}index.html`))],
    ['/console.css', file('text/css', await readFile(`${PAGE}console.css`))],
    ['/console.js', file('text/javascript', script)],
  ]);
}

/**
 * The script of the page.
 *
 * @throws ConsoleError 500 without the bundler
 */
export async function bundlePage(): Promise<Uint8Array> {
  const { build, stop } = await loadBundler();
  const { outputFiles } = await build({
    entryPoints: { console: `${PAGE}main.ts` },
    outdir: PAGE,
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    legalComments: 'none',
    logLevel: 'error',
  });
  // Ends the process of the bundler.
  await stop();
  const script = outputFiles.find(({ path }) => path.endsWith('.js'));
  if (script === undefined) throw new Error('the page has no script');
  return script.contents;
}

/** Loaded here: neither the other commands of the CLI nor a console without a page need it. */
async function loadBundler() {
  try {
    return await import('esbuild');
  } catch (cause) {
    throw new ConsoleError(500, 'esbuild, which builds the page, is not installed: run `npm ci`', { cause });
  }
}
