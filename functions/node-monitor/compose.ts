import { leaseProbe } from '../../shared/adapters/probe/lease-probe.ts';
import { systemClock } from '../../shared/adapters/system/clock.ts';
import { loadConfig, monitorConfig } from '../../shared/config/environment.ts';
import { log } from '../../shared/observability/logger.ts';
import { composeControllers, type Environment } from '../controllers.ts';
import { composeEventBus } from '../event-bus.ts';

export function composeNodeMonitor(environment: Environment) {
  const config = loadConfig(monitorConfig, environment);
  const { policy, probe } = config;
  if (probe === undefined && policy.ingestGate === 'on') {
    log.warn('no probe is configured: the gate cannot see a failing heartbeat path');
  }
  const beats = probe === undefined ? {} : { probe: leaseProbe({ ...probe, clock: systemClock }) };
  return {
    policy,
    tick: composeControllers(environment, config, { ...beats, ...composeEventBus(environment, config) })
      .tickNodeMonitor,
  };
}
