/**
 * A parser of HCL, Terraform's own compiled to WebAssembly, downloaded once into node_modules/.cache/nodekeeper/ (2 MB,
 * by npm). It needs the registry.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';

const NAME = '@cdktn/hcl2json';
const VERSION = '0.24.0';
const CACHE = join(repositoryRoot, 'node_modules/.cache/nodekeeper');
const FOLDER = join(CACHE, `hcl-${VERSION}`);
const DOWNLOAD_TIMEOUT_MS = 120_000;

interface Parser {
  parse(fileName: string, text: string): Promise<Record<string, Record<string, unknown>>>;
}

/**
 * The blocks of all files, by kind, type and name, as Terraform's JSON syntax has them.
 *
 * @param files names and texts
 * @throws Error with file and line for text that is no HCL
 */
export async function parseHcl(
  files: readonly (readonly [name: string, text: string])[],
): Promise<Record<string, Record<string, unknown>>> {
  download();
  const entry = join(FOLDER, 'node_modules', NAME, 'build/index.js');
  const { default: parser } = (await import(pathToFileURL(entry).href)) as { default: Parser };
  const all: Record<string, Record<string, unknown>> = {};
  for (const [name, text] of files) {
    for (const [kind, blocks] of Object.entries(await parser.parse(name, text))) {
      const before = all[kind];
      all[kind] = Array.isArray(blocks)
        ? ([...(Array.isArray(before) ? before : []), ...blocks] as unknown as Record<string, unknown>)
        : merged(before ?? {}, blocks);
    }
  }
  return all;
}

/** Two files may have resources of one type. */
const merged = (a: Record<string, unknown>, b: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    [...new Set([...Object.keys(a), ...Object.keys(b)])].map((name) => [
      name,
      a[name] === undefined || b[name] === undefined ? (a[name] ?? b[name]) : { ...a[name], ...b[name] },
    ]),
  );

/** Into a directory of its own, then renamed: two runs at once do not meet half a download. */
function download(): void {
  if (existsSync(FOLDER)) return;
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'hcl-download-'));
  try {
    const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--no-save', '--prefix', work];
    execFileSync('npm', ['install', ...options, `${NAME}@${VERSION}`], { stdio: 'pipe', timeout: DOWNLOAD_TIMEOUT_MS });
    if (!existsSync(FOLDER)) renameSync(work, FOLDER);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
