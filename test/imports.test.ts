import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const ROOMS = ['cdk', 'functions', 'shared', 'agent', 'local', 'test', 'bench'].filter((room) =>
  existsSync(join(ROOT, room)),
);

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

describe('the rules on imports', () => {
  it('report a rule that imports a node built-in and an adapter', async () => {
    const { summary } = await cruise(['test/fixtures/imports']);
    const broken = summary.violations
      .filter((violation) => violation.rule.name === 'domain-is-pure')
      .map((violation) => `${violation.from} -> ${violation.to}`);
    expect(broken.sort()).toEqual([
      'test/fixtures/imports/shared/domain/bad.ts -> os',
      'test/fixtures/imports/shared/domain/bad.ts -> test/fixtures/imports/shared/adapters/clock/system-clock.ts',
    ]);
  });

  it('really see the TypeScript of the real tree', async () => {
    const { modules } = await cruise(ROOMS);
    const own = modules.filter(({ source }) => /^(cdk|functions|shared|agent|local)\/.*\.ts$/.test(source));
    expect(own.length).toBeGreaterThan(20);
  });
});
