import { setTimeout as pause } from 'node:timers/promises';
import { keepProbeKey } from '../../shared/access/process-key-store.ts';
import { processKeys } from '../../shared/access/process-keys.ts';
import { composeDependencies, type Environment } from '../../shared/aws/controllers.ts';
import { composeEventBus } from '../../shared/aws/event-bus.ts';
import { queueConnectionFrom, sqsPartQueue } from '../../shared/aws/sqs.ts';
import { lambdaConnectionFrom, lambdaWaker } from '../../shared/aws/wake-up.ts';
import { systemClock } from '../../shared/clock.ts';
import { loadConfig, monitorConfig } from '../../shared/config/environment.ts';
import { log } from '../../shared/observability/logger.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { sqsTickQueue } from './chain.ts';
import { monitorDependencies } from './dependencies.ts';
import { everyProbe, leaseProbe, probeTokens } from './probes.ts';

export function composeNodeMonitor(environment: Environment) {
  const config = loadConfig(monitorConfig, environment);
  const { policy, clusterId, probeUrls } = config;
  if (probeUrls.length === 0 && policy.ingestGate === 'on') {
    log.warn('no probe is configured: the safety gate cannot detect a failing heartbeat path');
  }
  const probeOptions = (items: ItemStore) => {
    if (probeUrls.length === 0) return {};
    const credentials = probeTokens({ keys: processKeys(keepProbeKey(items), log), clusterId });
    return { probe: everyProbe(probeUrls.map((url) => leaseProbe({ url, credentials, clock: systemClock }))) };
  };
  const queue = sqsTickQueue(queueConnectionFrom(environment, config.tickQueueUrl));
  const common = composeDependencies(environment, config);
  const dependencies = monitorDependencies(common, {
    ...probeOptions(common.items),
    takeUnits: common.takeUnits,
    ...composeEventBus(environment, config),
    pause,
    tickQueue: queue,
    partQueue: sqsPartQueue(queueConnectionFrom(environment, config.partQueueUrl)),
    waker: lambdaWaker(lambdaConnectionFrom(environment), config.wakeFunctions),
  });
  return { dependencies, queue };
}
