/** A HeartbeatFile of nothing but memory, which outlives agents of one boot. */
import { AnsweredHeartbeats } from '../../agent/app/answered-heartbeats.ts';
import type { HeartbeatFile } from '../../agent/ports/heartbeat-file.ts';
import type { AgentTime } from '../../agent/ports/time.ts';
import type { ClockReading } from '../../agent/rules/offline-stop.ts';
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

export const noHeartbeats = (time: AgentTime): AnsweredHeartbeats =>
  new AnsweredHeartbeats({ time, log: silentLog, file: memoryHeartbeatFile() });
