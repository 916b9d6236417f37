import { tickHandler } from '../tick-handler.ts';
import { composeNodeMonitor } from './compose.ts';

const { policy, tick } = composeNodeMonitor(process.env);

export const handler = tickHandler(policy.nodeMonitorPeriodSeconds, tick);
