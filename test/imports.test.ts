import { execFile } from 'node:child_process';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** Something small of each folder that is checked. */
const PARTS: Readonly<Record<string, string>> = {
  agent: 'agent/rules/topology',
  'aws-local': 'aws-local/queues',
  bench: 'bench/slope.ts',
  cdk: 'cdk/bin',
  cli: 'cli/doctor/exchange.ts',
  console: 'console/server',
  demo: 'demo/greeting.ts',
  functions: 'functions/heartbeat',
  scripts: 'scripts/wording',
  server: 'server/readiness.ts',
  shared: 'shared/decisions',
  simulation: 'simulation/glob.ts',
  test: 'test/support/until.ts',
};
/** The folders on the command line of `npm run imports`. */
const FOLDERS = importsCommand().split('--output-type err ')[1]?.split(' ') ?? [];

function importsCommand(): string {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly scripts: { readonly imports: string };
  };
  return scripts.imports;
}

interface CruiseResult {
  readonly modules: readonly { readonly source: string }[];
  readonly summary: {
    readonly violations: readonly {
      readonly from: string;
      readonly to: string;
      readonly rule: { readonly name: string };
    }[];
  };
}

/** What `npm run imports` sees, as data. */
async function cruise(paths: readonly string[]): Promise<CruiseResult> {
  const program = join(ROOT, 'node_modules', '.bin', 'depcruise');
  const args = ['--config', '.dependency-cruiser.cjs', '--output-type', 'json', ...paths];
  const { stdout } = await promisify(execFile)(program, args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    timeout: 120_000,
    env: { ...process.env, PATH: `${join(ROOT, 'node_modules', '.bin')}:${process.env['PATH'] ?? ''}` },
  });
  return JSON.parse(stdout) as CruiseResult;
}

let ofFixtures: Promise<CruiseResult> | undefined;

/** What was planted on purpose and the rule of this name saw. */
async function planted(rule: string): Promise<readonly string[]> {
  ofFixtures ??= cruise(['test/fixtures/imports']);
  const { summary } = await ofFixtures;
  return summary.violations
    .filter((violation) => violation.rule.name === rule)
    .map(({ from, to }) => `${from} -> ${to}`.replaceAll('test/fixtures/imports/', ''))
    .sort();
}

describe('the rules on imports', () => {
  it('report shared code that imports a function', async () => {
    expect(await planted('shared-knows-no-program')).toEqual(['shared/fleet/bad.ts -> functions/one/work.ts']);
  });

  it('report a function that imports another one', async () => {
    expect(await planted('functions-apart')).toEqual(['functions/one/work.ts -> functions/other/work.ts']);
  });

  it('report a function that reaches what serves a kind, through any file', async () => {
    expect(await planted('serving-is-for-the-api')).toContain('functions/other/work.ts -> shared/kinds/pods/serve.ts');
  });

  it('report a function that reaches a validation that it does not run, through any file', async () => {
    expect(await planted('validation-is-for-who-creates')).toContain(
      'functions/other/work.ts -> shared/kinds/pods/validate.ts',
    );
  });

  it('report a circle, through types too', async () => {
    expect(await planted('no-circular')).toEqual(['shared/fleet/circle-one.ts -> shared/fleet/circle-two.ts']);
  });

  it('report a rule that imports a built-in module and what acts', async () => {
    expect(await planted('rules-are-pure')).toEqual([
      'functions/one/rule.ts -> functions/one/work.ts',
      'functions/one/rule.ts -> os',
    ]);
  });

  it('report shared code that imports a built-in module outside of its place', async () => {
    expect(await planted('io-has-its-place')).toEqual(['shared/fleet/outside.ts -> os']);
  });

  it('report a command of people that imports what the account runs', async () => {
    expect(await planted('clients-use-the-api')).toEqual(['cli/bad.ts -> functions/one/work.ts']);
  });

  it('report a manifest that imports what the function runs', async () => {
    expect(await planted('manifests-are-data')).toEqual(['functions/one/manifest.ts -> functions/one/rule.ts']);
  });

  it('report a template that imports a function, and let it read the manifest', async () => {
    expect(await planted('deployed-by-path')).toEqual(['cdk/bad.ts -> functions/one/work.ts']);
  });

  it('report a page that imports a module of Node', async () => {
    expect(await planted('page-runs-in-a-browser')).toEqual(['console/page/bad.ts -> os']);
  });

  it('report a program that imports what only tests use', async () => {
    expect(await planted('programs-rest-on-no-tool')).toEqual(['agent/bad.ts -> test/support/seeded.ts']);
  });

  it('are asked of every folder that holds TypeScript', () => {
    const withTypeScript = readdirSync(ROOT, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !/^\.|^node_modules$|^cdk\.out$/.test(entry.name))
      .map(({ name }) => name)
      .filter(
        (name) =>
          // site/ has packages of its own, once it was built.
          globSync(`${name}/**/*.ts`, { cwd: ROOT, exclude: ['**/node_modules/**'] }).length > 0,
      );
    expect([...FOLDERS].sort()).toEqual(withTypeScript.sort());
  });

  it('really see the TypeScript of the real tree', async () => {
    // A part of each folder, with what it imports: npm run imports sees all of it, in five times as long.
    const { modules } = await cruise(Object.values(PARTS));
    expect(Object.keys(PARTS).toSorted()).toEqual(FOLDERS.toSorted());
    const isSeen = (folder: string): boolean =>
      modules.some(({ source }) => source.startsWith(`${folder}/`) && source.endsWith('.ts'));
    expect(FOLDERS.filter((folder) => !isSeen(folder))).toEqual([]);
    expect(modules.length).toBeGreaterThan(100);
  });
});
