import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { type SynthesisOptions, synthesise } from './synthesise.ts';

/** Stands in for the CDK app: writes its context as the manifest, or fails. */
const APP = `
import { mkdirSync, writeFileSync } from 'node:fs';
const context = JSON.parse(process.env.CDK_CONTEXT_JSON);
if (context.policyFile === 'bad') throw new RangeError('the policy is no good');
if (context.policyFile !== 'silent') writeFileSync(process.env.CDK_OUTDIR + '/manifest.json', process.env.CDK_CONTEXT_JSON);
`;

let projectDirectory: string;

beforeEach(() => {
  projectDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-synth-'));
  onTestFinished(() => rmSync(projectDirectory, { recursive: true }));
  mkdirSync(join(projectDirectory, 'cdk'));
  writeFileSync(
    join(projectDirectory, 'cdk.json'),
    JSON.stringify({ app: 'node cdk/app.ts', context: { flag: true } }),
  );
  writeFileSync(join(projectDirectory, 'cdk/app.ts'), APP);
});

const run = (options: Partial<SynthesisOptions> = {}) =>
  synthesise({ projectDirectory, context: {}, inputFiles: [], mode: 'auto', ...options });

describe('synthesis', () => {
  it('runs the app with the context of cdk.json and that of the call', async () => {
    const { directory, kind } = await run({ context: { extra: 1 } });
    expect(kind).toBe('synthesised');
    expect(JSON.parse(readFileSync(join(directory, 'manifest.json'), 'utf8'))).toEqual({ flag: true, extra: 1 });
  });

  it('reuses the assembly of the same sources', async () => {
    const first = await run();
    expect(await run()).toEqual({ ...first, kind: 'reused' });
    expect(await run({ mode: 'never' })).toEqual({ ...first, kind: 'reused' });
    expect((await run({ mode: 'always' })).kind).toBe('synthesised');
  });

  it('makes another when a source, a context value or an input file changes', async () => {
    const policy = join(projectDirectory, 'policy.yaml');
    writeFileSync(policy, 'a: 1');
    const seen = new Set([
      (await run()).directory,
      (await run({ context: { x: 1 } })).directory,
      (await run({ inputFiles: [policy] })).directory,
    ]);
    writeFileSync(policy, 'a: 2');
    seen.add((await run({ inputFiles: [policy] })).directory);
    writeFileSync(join(projectDirectory, 'cdk/more.ts'), 'export {};');
    seen.add((await run()).directory);
    writeFileSync(join(projectDirectory, 'cdk/more.test.ts'), 'export {};');
    seen.add((await run()).directory);
    expect(seen.size).toBe(5);
  });

  it('survives two starts that synthesise at once', async () => {
    const [a, b] = await Promise.all([run(), run()]);
    expect(a.directory).toBe(b.directory);
    expect(readdirSync(join(projectDirectory, '.nodekeeper/assembly'))).toHaveLength(1);
  });

  it('says in one line why the app failed', async () => {
    await expect(run({ context: { policyFile: 'bad' } })).rejects.toThrow(
      /^synthesis failed: RangeError: the policy is no good$/,
    );
    await expect(run({ context: { policyFile: 'silent' } })).rejects.toThrow(
      'the CDK app (node cdk/app.ts) wrote no assembly',
    );
    await expect(run({ inputFiles: ['/nowhere.yaml'] })).rejects.toThrow('/nowhere.yaml cannot be read: ENOENT');
    await expect(run({ mode: 'never' })).rejects.toThrow(
      'no assembly of these sources exists: start without --synth never',
    );
  });
});
