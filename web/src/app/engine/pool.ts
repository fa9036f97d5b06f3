// Gives tasks to workers: one for what the reader waits for, the others for long work.
//
// A task that is running cannot be interrupted: to cancel it, its worker is ended and a new one
// started when there is work for it.

import type { Answer, Failure, Library, Order, Task } from "./protocol";

// An error of the engine, or of a worker.
export class EngineError extends Error {
  readonly hint: string | undefined;
  constructor({ message, hint }: Failure) {
    super(message);
    this.hint = hint;
  }
}

export class Cancelled extends Error {}

export type Progress = (done: number, total: number) => void;

export interface Job {
  library: Library;
  task: Task;
  progress?: Progress;
  // Ends the job, also while it runs.
  signal?: AbortSignal;
  // Waits until no other job does.
  last?: boolean;
}

interface Queued extends Job {
  id: number;
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

// Makes a worker; tests give one of their own.
export type MakeWorker = () => Worker;

// One worker at a time, and the job that it is doing.
class Seat {
  worker: Worker | null = null;
  job: Queued | null = null;
  constructor(readonly make: MakeWorker, readonly done: () => void) {}

  start(): Worker {
    if (this.worker) return this.worker;
    const worker = this.make();
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.receive(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.stop(new EngineError({ message: `the engine could not be started: ${event.message || "its worker failed"}` }));
    };
    this.worker = worker;
    return worker;
  }

  give(job: Queued): void {
    this.job = job;
    const order: Order = { id: job.id, library: job.library, task: job.task };
    this.start().postMessage(order);
  }

  receive(answer: Answer): void {
    const job = this.job;
    if (!job || answer.id !== job.id) return;
    if ("progress" in answer) return job.progress?.(...answer.progress);
    this.job = null;
    if ("result" in answer) job.resolve(answer.result);
    else job.reject(new EngineError(answer.failure));
    if ("failure" in answer && answer.failure.isFatal) this.end();
    this.done();
  }

  stop(error: Error): void {
    const job = this.job;
    this.job = null;
    this.end();
    job?.reject(error);
    this.done();
  }

  end(): void {
    this.worker?.terminate();
    this.worker = null;
  }
}

export class Pool {
  private readonly seats: Seat[];
  private queue: Queued[] = [];
  private ids = 0;

  constructor(size: number, make: MakeWorker) {
    this.seats = Array.from({ length: size }, () => new Seat(make, () => this.next()));
  }

  get size(): number {
    return this.seats.length;
  }

  run<T>(job: Job): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (job.signal?.aborted) return reject(new Cancelled());
      this.ids += 1;
      const queued: Queued = { ...job, id: this.ids, resolve: (result) => resolve(result as T), reject };
      job.signal?.addEventListener("abort", () => this.cancel(queued), { once: true });
      this.queue.push(queued);
      this.next();
    });
  }

  private cancel(job: Queued): void {
    const seat = this.seats.find((one) => one.job === job);
    if (seat) return seat.stop(new Cancelled());
    if (!this.queue.includes(job)) return;
    this.queue = this.queue.filter((one) => one !== job);
    job.reject(new Cancelled());
  }

  private next(): void {
    // Of jobs that share a signal, the first to hear of it ends its worker before the others do.
    const cancelled = this.queue.filter((one) => one.signal?.aborted);
    this.queue = this.queue.filter((one) => !one.signal?.aborted);
    for (const job of cancelled) job.reject(new Cancelled());
    for (const seat of this.seats) {
      if (seat.job) continue;
      const job = this.queue.find((one) => !one.last) ?? this.queue[0];
      if (!job) return;
      this.queue = this.queue.filter((one) => one !== job);
      seat.give(job);
    }
  }
}
