import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** The folders on the command line of `npm run imports`. */
const ROOMS = importsCommand().split('--output-type err ')[1]?.split(' ') ?? [];

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

/** What was planted on purpose and the rule of this name saw. */
async function planted(rule: string): Promise<readonly string[]> {
  const { summary } = await cruise(['test/fixtures/imports']);
  return summary.violations
    .filter((violation) => violation.rule.name === rule)
    .map(({ from, to }) => `${from} -> ${to}`.replaceAll('test/fixtures/imports/', ''))
    .sort();
}

describe('the rules on imports', () => {
  it('report a heartbeat that imports the API', async () => {
    expect(await planted('heartbeat-is-alone')).toEqual(['shared/heartbeat/bad.ts -> shared/api/request.ts']);
  });

  it('report a page of the console that imports the API', async () => {
    expect(await planted('console-page-runs-in-a-browser')).toEqual(['console/page/bad.ts -> shared/api/request.ts']);
  });

  it('report a circle, through types too', async () => {
    expect(await planted('no-circular')).toEqual(['shared/kube/circle-one.ts -> shared/kube/circle-two.ts']);
  });

  it('report a rule that imports a node built-in and an adapter', async () => {
    expect(await planted('rules-are-pure')).toEqual([
      'shared/controllers/planted/rule.ts -> os',
      'shared/controllers/planted/rule.ts -> shared/adapters/clock/system-clock.ts',
      'shared/controllers/planted/second.rule.ts -> shared/controllers/planted/reconcile.ts',
      'shared/domain/bad.ts -> os',
      'shared/domain/bad.ts -> shared/adapters/clock/system-clock.ts',
    ]);
  });

  it('report a manifest that imports what the function runs', async () => {
    expect(await planted('manifests-are-data')).toEqual([
      'shared/controllers/planted/manifest.ts -> shared/controllers/planted/rule.ts',
    ]);
  });

  it('report a template that imports a controller, and let it read the manifest', async () => {
    expect(await planted('cdk-knows-config-and-manifests-only')).toEqual([
      'cdk/bad.ts -> shared/controllers/planted/reconcile.ts',
    ]);
  });

  it('report a simulated machine that imports a loop of the agent, and let it share the rules', async () => {
    expect(await planted('local-runs-what-is-deployed')).toEqual(['demo/fleet/bad.ts -> agent/app/lease-loop.ts']);
    expect(await planted('simulation-apart')).toEqual(['simulation/bad.ts -> agent/app/lease-loop.ts']);
  });

  it('report the rest of local mode when it imports a rule of the agent', async () => {
    expect(await planted('fleet-shares-rules-of-the-agent')).toEqual(['aws-local/bad.ts -> agent/rules/lease.ts']);
  });

  it('report an adapter that imports another one, and let it share how AWS is spoken to', async () => {
    expect(await planted('adapters-apart')).toEqual([
      'shared/adapters/bad/clock-of-another.ts -> shared/adapters/clock/system-clock.ts',
    ]);
  });

  it('report a library in what all functions carry', async () => {
    expect(await planted('aws-connection-is-small')).toEqual([
      expect.stringMatching(/^shared\/adapters\/aws-connection\/bad\.ts -> node_modules\/yaml\//),
    ]);
  });

  it('are asked of every folder that holds TypeScript', () => {
    const folders = readdirSync(ROOT, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !/^\.|^node_modules$|^cdk\.out$/.test(entry.name))
      .map(({ name }) => name)
      .filter((name) =>
        readdirSync(join(ROOT, name), { recursive: true }).some((file) => String(file).endsWith('.ts')),
      );
    expect([...ROOMS].sort()).toEqual(folders.sort());
  });

  it('really see the TypeScript of the real tree', async () => {
    const { modules } = await cruise(ROOMS);
    const own = modules.filter(({ source }) => /^(cdk|functions|shared|agent|local|scripts)\/.*\.ts$/.test(source));
    expect(own.length).toBeGreaterThan(20);
  });
});
