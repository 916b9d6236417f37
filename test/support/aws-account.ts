/**
 * An AWS account over the wire: Lambda (REST JSON), CloudWatch and Service Quotas (JSON 1.0 and 1.1). It checks that
 * each request is signed for its service and Region.
 */

import { createServer, type IncomingMessage } from 'node:http';
import { listenOnLoopback } from '../../shared/host/loopback.ts';

export interface AlarmInAccount {
  readonly name: string;
  readonly state: 'OK' | 'ALARM' | 'INSUFFICIENT_DATA';
  readonly description?: string;
  readonly actions?: readonly string[];
}

export interface AwsAccountState {
  concurrency: number;
  unreserved: number;
  codeBytes: number;
  /** By service code and quota code. A missing one is answered with AWS's default below. */
  readonly quotas: Map<string, number>;
  readonly defaultQuotas: Map<string, number>;
  readonly alarms: AlarmInAccount[];
  /** Points of the one metric that is asked for, newest first. By namespace, metric name and service. */
  readonly metrics: Map<string, { readonly atMs: number; readonly value: number }[]>;
  /** Actions that are refused, by error code. */
  readonly refused: Map<string, string>;
  /** Added to the Date header. Milliseconds. */
  clockSkewMs: number;
}

export interface AwsAccountServer {
  readonly url: string;
  readonly state: AwsAccountState;
  /** Actions in order. */
  readonly calls: string[];
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const PAGE_ALARMS = 2;

export async function startAwsAccount(region: string): Promise<AwsAccountServer> {
  const state: AwsAccountState = {
    concurrency: 1_000,
    unreserved: 1_000,
    codeBytes: 1e9,
    quotas: new Map(),
    defaultQuotas: new Map([
      ['apigateway L-8A5B8E43', 10_000],
      ['dynamodb L-AB614373', 40_000],
      ['dynamodb L-CF0CBE56', 40_000],
    ]),
    alarms: [],
    metrics: new Map(),
    refused: new Map(),
    clockSkewMs: 0,
  };
  const calls: string[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    request.on('end', () => {
      const { status, body } = answerOf(request, text);
      response.setHeader('date', new Date(Date.now() + state.clockSkewMs).toUTCString());
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });

  function answerOf(request: IncomingMessage, text: string): Answer {
    const path = request.url ?? '';
    const target = String(request.headers['x-amz-target'] ?? '');
    const isSettings = path.startsWith('/2016-08-19/account-settings');
    if (!isSettings && target === '') return { status: 403, body: { message: 'Missing Authentication Token' } };
    const [service, action] = isSettings
      ? ['lambda', 'GetAccountSettings']
      : [target.startsWith('Granite') ? 'monitoring' : 'servicequotas', target.slice(target.lastIndexOf('.') + 1)];
    calls.push(action);
    const scope = `/${region}/${service}/aws4_request`;
    if (!String(request.headers['authorization']).includes(scope)) {
      return { status: 403, body: { __type: 'SignatureDoesNotMatch', message: `not signed for ${scope}` } };
    }
    const code = state.refused.get(action);
    if (code !== undefined)
      return { status: 400, body: { __type: code, message: `not authorized to perform ${action}` } };
    return (
      HANDLERS[action]?.(state, JSON.parse(text || '{}')) ?? {
        status: 400,
        body: { __type: 'UnknownOperationException' },
      }
    );
  }

  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    state,
    calls,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

type Input = Readonly<Record<string, unknown>>;

const quotaAnswer = (value: number | undefined): Answer =>
  value === undefined
    ? { status: 400, body: { __type: 'NoSuchResourceException', Message: 'no applied value' } }
    : { status: 200, body: { Quota: { Value: value } } };

const quotaKey = ({ ServiceCode, QuotaCode }: Input): string => `${ServiceCode} ${QuotaCode}`;

const HANDLERS: Readonly<Record<string, (state: AwsAccountState, input: Input) => Answer>> = {
  GetAccountSettings: ({ concurrency, unreserved, codeBytes }) => ({
    status: 200,
    body: {
      AccountLimit: {
        ConcurrentExecutions: concurrency,
        UnreservedConcurrentExecutions: unreserved,
        TotalCodeSize: 80_530_636_800,
      },
      AccountUsage: { TotalCodeSize: codeBytes, FunctionCount: 9 },
    },
  }),
  GetServiceQuota: ({ quotas }, input) => quotaAnswer(quotas.get(quotaKey(input))),
  GetAWSDefaultServiceQuota: ({ defaultQuotas }, input) => quotaAnswer(defaultQuotas.get(quotaKey(input))),
  DescribeAlarms({ alarms }, { AlarmNamePrefix: prefix, NextToken: token }) {
    const all = alarms.filter(({ name }) => name.startsWith(String(prefix)));
    const from = Number(token ?? 0);
    const page = all.slice(from, from + PAGE_ALARMS).map(({ name, state, description, actions }) => ({
      AlarmName: name,
      AlarmDescription: description,
      StateValue: state,
      ActionsEnabled: true,
      AlarmActions: actions ?? [],
    }));
    const isComposite = (name: string): boolean => name.endsWith('-page');
    return {
      status: 200,
      body: {
        MetricAlarms: page.filter(({ AlarmName }) => !isComposite(AlarmName)),
        CompositeAlarms: page.filter(({ AlarmName }) => isComposite(AlarmName)),
        ...(from + PAGE_ALARMS < all.length ? { NextToken: String(from + PAGE_ALARMS) } : {}),
      },
    };
  },
  GetMetricData({ metrics }, { MetricDataQueries: queries, StartTime: start }) {
    const [{ MetricStat: stat }] = queries as [{ MetricStat: { Metric: Metric } }];
    const { Namespace, MetricName, Dimensions } = stat.Metric;
    const points = metrics.get([Namespace, MetricName, ...Dimensions.map(({ Value }) => Value)].join(' ')) ?? [];
    const inWindow = points.filter(({ atMs }) => atMs >= Number(start) * 1_000);
    return {
      status: 200,
      body: {
        MetricDataResults: [
          {
            Id: 'age',
            StatusCode: 'Complete',
            Timestamps: inWindow.map(({ atMs }) => atMs / 1_000),
            Values: inWindow.map(({ value }) => value),
          },
        ],
      },
    };
  },
};

interface Metric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions: readonly { readonly Value: string }[];
}
