import { Duration, RemovalPolicy, Tags } from 'aws-cdk-lib';
import { Effect, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import {
  ApplicationLogLevel,
  Architecture,
  type CfnFunction,
  Function as LambdaFunction,
  LoggingFormat,
  Runtime,
  SystemLogLevel,
  Tracing,
} from 'aws-cdk-lib/aws-lambda';
import { LogGroup, type RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import type { FunctionName } from '../../functions/function-list.ts';
import { defined } from '../../shared/defined.ts';
import { type AddedFiles, bundledHandler } from './bundle.ts';

/** Tag and metadata key with the name in the function list, because CloudFormation generates the function's name. */
export const FUNCTION_ROLE_KEY = 'nodekeeper:function';

type Conditions = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

export interface HandlerFunctionProps {
  readonly functionName: FunctionName;
  readonly description: string;
  /** The variables of the function's config schema (shared/config/environment.ts). */
  readonly environment: Readonly<Record<string, string>>;
  /** Memory in MB. It also sets the CPU share: 1,769 MB is one vCPU. */
  readonly memoryMegabytes: number;
  readonly timeoutSeconds: number;
  /** Files beside the handler. */
  readonly files?: AddedFiles;
  readonly logRetention: RetentionDays;
  /** Executions reserved for the function, and its maximum. @default - those that the account has left */
  readonly reservedConcurrency?: number;
}

/**
 * A Lambda function with a role of its own. Until `allow` is called, the role may only write to the function's log
 * group.
 */
export class HandlerFunction extends Construct {
  readonly lambda: LambdaFunction;
  readonly #role: Role;

  constructor(scope: Construct, id: string, props: HandlerFunctionProps) {
    super(scope, id);
    const logGroup = new LogGroup(this, 'Logs', {
      retention: props.logRetention,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.#role = new Role(this, 'Role', {
      assumedBy: new ServicePrincipal('lambda.amazonaws.com'),
      description: `Nodekeeper ${props.functionName}`,
    });
    this.allow(['logs:CreateLogStream', 'logs:PutLogEvents'], [logGroup.logGroupArn]);

    this.lambda = new LambdaFunction(this, 'Function', {
      description: props.description,
      code: bundledHandler(props.functionName, props.files),
      handler: 'index.handler',
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      memorySize: props.memoryMegabytes,
      timeout: Duration.seconds(props.timeoutSeconds),
      role: this.#role,
      ...defined({ reservedConcurrentExecutions: props.reservedConcurrency }),
      logGroup,
      loggingFormat: LoggingFormat.JSON,
      // Platform lines at INFO would cost as much as the requests: 0.4 KB a beat.
      systemLogLevelV2: SystemLogLevel.WARN,
      // Metrics are lines without a level, which Lambda reads as INFO and drops above it. The log of functions is
      // limited by shared/observability/logger.ts. Source: AWS Lambda Developer Guide, "Log-level filtering".
      applicationLogLevelV2: ApplicationLogLevel.INFO,
      tracing: Tracing.DISABLED,
      environment: { ...props.environment },
    });

    Tags.of(this).add(FUNCTION_ROLE_KEY, props.functionName);
    (this.lambda.node.defaultChild as CfnFunction).addMetadata(FUNCTION_ROLE_KEY, props.functionName);
  }

  /** Adds to the function's role. Name the actions: no wildcard, no managed policy. */
  allow(actions: readonly string[], resourceArns: readonly string[], conditions?: Conditions): void {
    this.#add(Effect.ALLOW, actions, resourceArns, conditions);
  }

  /** Refuses actions that the role must have for Lambda itself. */
  deny(actions: readonly string[], resourceArns: readonly string[], conditions: Conditions): void {
    this.#add(Effect.DENY, actions, resourceArns, conditions);
  }

  #add(effect: Effect, actions: readonly string[], resourceArns: readonly string[], conditions?: Conditions): void {
    this.#role.addToPolicy(
      new PolicyStatement({
        effect,
        actions: [...actions],
        resources: [...resourceArns],
        ...(conditions === undefined ? {} : { conditions: { ...conditions } }),
      }),
    );
  }
}
