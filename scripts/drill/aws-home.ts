/** The emulation of AWS: another build is a deployment over the same tables, one function after the other. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLocalHost } from '../../bench/local-host.ts';
import type { Build, Home } from './home.ts';

/**
 * @param builds the first one is deployed; others may follow
 * @param pauseMs between two functions. Until the last one is replaced, both builds work on the same rows
 */
export async function openAwsHome(builds: readonly [Build, ...Build[]], pauseMs: number): Promise<Home> {
  const assemblies = new Map<Build, string>();
  for (const build of builds) assemblies.set(build, await build.assembly());
  const assemblyDirectory = assemblies.get(builds[0])!;
  const data = mkdtempSync(join(tmpdir(), 'nk-drill-'));
  const removeData = (): void => rmSync(data, { recursive: true, force: true });
  process.once('exit', removeData);
  const discard = (): void => {
    process.off('exit', removeData);
    removeData();
  };
  const host = await startLocalHost({ assemblyDirectory, dataDirectory: data, awsLimits: true }).catch(
    (cause: Error) => {
      discard();
      throw cause;
    },
  );
  const { url, ca, token, fleetToken } = host;
  return {
    name: 'AWS, emulated',
    access: { url, ca, token },
    fleetAccess: { url, ca, token: fleetToken },
    async change(build) {
      await host.deploy(assemblies.get(build) ?? (await build.assembly()), pauseMs);
    },
    async stop() {
      await host.stop();
      discard();
    },
  };
}
