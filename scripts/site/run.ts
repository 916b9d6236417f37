/**
 * npm run site -- [--base /PATH/] [--serve] [--port N] [--check]
 *
 * Builds the documentation site into dist/site: README, CHANGELOG and docs, with search in the page. VitePress builds
 * it; its packages are those of site/package-lock.json, installed at the first run.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { checkInBrowser } from './browser-check.ts';
import { faultsOfSite } from './links.ts';
import { GENERATED, navigation, type Sources, sitePage, sitePath } from './pages.ts';
import { serveSite } from './serve.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SITE = join(ROOT, 'site');
const PAGES = join(SITE, '.pages');
const OUT = join(ROOT, 'dist/site');
const STEP_MS_MAX = 300_000;
const PORT = 4173;
/** Below a path, so a link that ignores the base is found. */
const CHECKED_BASE = '/below/a/path/';

const USAGE = `Usage: npm run site -- [--base /PATH/] [--serve] [--port N] [--check]

  --base PATH   where the site will be served (/), with a slash at both ends
  --serve       serves it on 127.0.0.1, port ${PORT}, until Ctrl-C
  --port N      another port; 0 for any that is free
  --check       builds it below ${CHECKED_BASE} and tries it in Chromium: pages, search, both colour schemes, 390 pixels
`;

function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): void {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    timeout: STEP_MS_MAX,
  });
  if (status === 0) return;
  throw new Error(`${program} ${args.join(' ')} failed:\n${stdout}${stderr}`, { cause: error });
}

/** Where a forge shows the files of the project, by package.json. */
function filesUrl(): string | undefined {
  const { repository } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly repository?: string | { readonly url: string };
  };
  const url = typeof repository === 'object' ? repository.url : repository;
  return url === undefined ? undefined : `${url.replace(/^git\+/, '').replace(/\.git$/, '')}/blob/main/`;
}

function writePages(): number {
  const names = globSync(['README.md', 'CHANGELOG.md', 'AGENTS.md', 'docs/**/*.md'], { cwd: ROOT });
  const pages = new Map(names.map((name) => [name, readFileSync(join(ROOT, name), 'utf8')]));
  const sources: Sources = { pages, exists: (path) => existsSync(join(ROOT, path)), filesUrl: filesUrl() };
  rmSync(PAGES, { recursive: true, force: true });
  mkdirSync(PAGES, { recursive: true });
  const generated = join(PAGES, 'generated.md');
  run(process.execPath, [GENERATED.program, generated]);
  pages.set(GENERATED.page, readFileSync(generated, 'utf8'));
  rmSync(generated);
  for (const name of pages.keys()) {
    const file = join(PAGES, sitePath(name));
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, sitePage(name, sources));
  }
  for (const image of globSync('docs/**/*.{png,webp,svg}', { cwd: ROOT }))
    cpSync(join(ROOT, image), join(PAGES, image));
  writeFileSync(join(PAGES, 'navigation.json'), JSON.stringify(navigation(pages)));
  return pages.size;
}

function build(base: string): void {
  const program = join(SITE, 'node_modules/vitepress/bin/vitepress.js');
  if (!existsSync(program)) run('npm', ['ci', '--prefix', SITE, '--no-audit', '--no-fund', '--ignore-scripts']);
  const count = writePages();
  rmSync(OUT, { recursive: true, force: true });
  run(process.execPath, [program, 'build', SITE], { SITE_BASE: base, SITE_OUT: OUT });
  const faults = faultsOfSite(OUT, base);
  if (faults.length > 0) throw new Error(`the site has ${faults.length} faults:\n${faults.join('\n')}`);
  console.log(`site: ${count} pages in dist/site`);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      base: { type: 'string' },
      serve: { type: 'boolean', default: false },
      port: { type: 'string', default: String(PORT) },
      check: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const base = values.base ?? (values.check ? CHECKED_BASE : '/');
  if (!/^\/(?:.*\/)?$/.test(base)) throw new Error(`--base ${base}: a path with a slash at both ends is expected`);
  build(base);
  if (values.check) {
    const { server, address } = await serveSite(OUT, base, 0);
    try {
      console.log(await checkInBrowser(address));
    } finally {
      server.close();
      server.closeAllConnections();
    }
  }
  if (values.serve) console.log(`The site is at ${(await serveSite(OUT, base, Number(values.port))).address}`);
}

await main().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
