/** Measurements for `nodekeeper-agent doctor` that only Windows has. None changes anything, and none rejects. */
import { uptime } from 'node:os';
import { join } from 'node:path';
import type { PreshutdownReading, ShutdownHistory } from '../../rules/doctor-windows.ts';
import { readShutdownState, SHUTDOWN_STATE_FILE } from '../../rules/shutdown-state.ts';
import { SERVICE_NAME } from '../../rules/windows-install.ts';
import { readFile } from '../system/files.ts';
import { PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER } from '../windows/preshutdown.ts';
import { registryTexts } from '../windows/registry.ts';
import { preshutdownTimeoutMs, serviceDependencies, serviceExists } from '../windows/service-database.ts';

export function readPreshutdown(): PreshutdownReading {
  try {
    if (!serviceExists(SERVICE_NAME)) return { kind: 'absent' };
    return {
      kind: 'service',
      name: SERVICE_NAME,
      timeoutMs: preshutdownTimeoutMs(SERVICE_NAME),
      dependencies: serviceDependencies(SERVICE_NAME),
      order: registryTexts(PRESHUTDOWN_KEY, PRESHUTDOWN_ORDER) ?? [],
    };
  } catch (error) {
    return { kind: 'unreadable', message: error instanceof Error ? error.message : String(error) };
  }
}

export async function readShutdownHistory(rootDirectory: string, nowMs: number): Promise<ShutdownHistory> {
  const text = await readFile(join(rootDirectory, SHUTDOWN_STATE_FILE), 'utf8').catch(() => undefined);
  return { last: text === undefined ? undefined : readShutdownState(text), bootedAtMs: nowMs - uptime() * 1_000 };
}
