import { tickHandler } from '../../shared/aws/wake-up.ts';
import { composeEvictor } from './compose.ts';

const { policy, tick } = composeEvictor(process.env);

export const handler = tickHandler(policy.nodeMonitorPeriodSeconds, tick, { reportsSweeps: true });
