import { tickHandler } from '../../shared/aws/tick-handler.ts';
import { composeEvictor } from './compose.ts';

const { policy, tick } = composeEvictor(process.env);

export const handler = tickHandler(policy.nodeMonitorPeriodSeconds, tick, { reportsSweeps: true });
