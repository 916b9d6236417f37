import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { updateKeyOf, updateSource } from '../agent/adapters/updates/update-source.ts';
import { signatureFault } from '../agent/rules/update-check.ts';
import { apiInMemory } from '../test/support/api-in-memory.ts';

const SCRIPT = fileURLToPath(new URL('agent-release.ts', import.meta.url));

it('prints a release that the API stores and a machine accepts', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-release-'));
  const at = (name: string): string => join(directory, name);
  const run = (...args: readonly string[]): string =>
    execFileSync(process.execPath, [SCRIPT, ...args], { encoding: 'utf8', stdio: 'pipe' });
  try {
    run('--new-key', at('key'));
    expect(statSync(at('key')).mode & 0o777).toBe(0o600);
    // A key is never replaced: machines would not accept another one.
    expect(() => run('--new-key', at('key'))).toThrow(/EEXIST/);
    writeFileSync(at('agent.mjs'), 'console.log("3.2.1");');
    const url = 'https://files.example/agent.mjs';
    const release = parse(run('--file', at('agent.mjs'), '--url', url, '--key', at('key')));
    expect(release).toMatchObject({ metadata: { name: 'agent' }, spec: { version: '3.2.1' } });
    const path = '/apis/nodekeeper.dev/v1alpha1/agentreleases';
    expect((await apiInMemory().send('POST', path, { body: release })).code).toBe(201);

    const publicKey = updateKeyOf(readFileSync(at('key.pub'), 'utf8'));
    const options = { directory, environment: {}, certificateAuthority: undefined, apiHost: '' };
    const [artifact] = release.spec.artifacts;
    const offered = { ...artifact, name: 'agent', version: '3.2.1' };
    const { isSigned } = updateSource({ ...options, publicKey });
    expect(signatureFault(offered, '3.2.0', isSigned)).toBeUndefined();
    expect(signatureFault({ ...offered, version: '3.2.2' }, '3.2.0', isSigned)).toMatch(
      /^the signature of 3.2.2 is not/,
    );
    expect(signatureFault(offered, '3.3.0', isSigned)).toBe(
      '3.2.1 is older than 3.3.0, and is not signed as a downgrade',
    );

    const file = ['--file', at('agent.mjs'), '--url', url, '--key', at('key')];
    const downgrade = parse(run(...file, '--name', 'older', '--allow-downgrade'));
    expect((await apiInMemory().send('POST', path, { body: downgrade })).code).toBe(201);
    const allowed = { ...downgrade.spec.artifacts[0], name: 'older', version: '3.2.1' };
    expect(signatureFault(allowed, '3.3.0', isSigned)).toBeUndefined();
    // The ordinary signature does not serve as the other one.
    const forged = { ...offered, downgradeSignature: offered.signature };
    expect(signatureFault(forged, '3.3.0', isSigned)).toMatch(/is not signed as a downgrade$/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
