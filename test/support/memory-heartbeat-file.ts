/** Files of nothing but memory, which outlive agents of one boot. */
import { AnsweredHeartbeats } from '../../agent/app/answered-heartbeats.ts';
import type { HeartbeatFile } from '../../agent/ports/heartbeat-file.ts';
import type { PermitFile } from '../../agent/ports/permit-file.ts';
import type { AgentTime } from '../../agent/ports/time.ts';
import type { ClockReading, KeptPermits } from '../../agent/rules/offline-stop.ts';
import { silentLog } from './agent-api.ts';

export interface MemoryHeartbeatFile extends HeartbeatFile {
  kept: ClockReading | undefined;
  writes: number;
}

export function memoryHeartbeatFile(): MemoryHeartbeatFile {
  const file: MemoryHeartbeatFile = {
    kept: undefined,
    writes: 0,
    read: async () => file.kept,
    async write(heartbeat) {
      file.kept = heartbeat;
      file.writes += 1;
    },
  };
  return file;
}

export function memoryPermitFile(): PermitFile {
  let kept: KeptPermits | undefined;
  return {
    read: async () => kept,
    async write(permits) {
      kept = structuredClone(permits);
    },
  };
}

export const noHeartbeats = (time: AgentTime): AnsweredHeartbeats =>
  new AnsweredHeartbeats({ time, log: silentLog, file: memoryHeartbeatFile() });
