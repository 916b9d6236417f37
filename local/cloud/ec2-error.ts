/** An error as EC2 answers it. */
export class Ec2ApiError extends Error {
  override readonly name = 'Ec2ApiError';
  readonly code: string;
  readonly status: number;

  constructor(code: string, message: string, status = 400) {
    super(message);
    this.code = code;
    this.status = status;
  }
}
