import { fenceReader } from '../../shared/api/move-door.ts';
import { systemClock } from '../../shared/clock.ts';
import { shardsOf } from '../../shared/kinds/resources.ts';
import { changeLog } from '../../shared/store/change-log.ts';
import type { ChangeSignals } from '../watches/change-signals.ts';
import { reportingCommits } from '../watches/own-commits.ts';
import { pollCommits } from '../watches/polled-commits.ts';
import type { StackName } from './deployed-tables.ts';

/** The tables of a stack, with signals for watches. The SDK of AWS is loaded when it is needed. @throws StartError */
export async function openServedTables(named: StackName, signals: ChangeSignals) {
  const { openDeployedTables } = await import('./deployed-tables.ts');
  const deployed = await openDeployedTables(named, process.env);
  const polled = pollCommits(changeLog({ items: deployed.items, clock: systemClock, shardsOf }), signals);
  return {
    ...deployed,
    items: reportingCommits(deployed.items, (resource) => signals.changed(resource)),
    fence: fenceReader({ items: deployed.items, nowMs: systemClock.nowMs }),
    fault: () => polled.fault(),
    close() {
      polled.stop();
      deployed.close();
    },
  };
}
