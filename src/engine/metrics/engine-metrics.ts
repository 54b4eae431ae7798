import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { VmEgress } from "../egress/vm-egress.ts";
import type { Tasks } from "../tasks/tasks.ts";
import type { VmMeter, VmStats } from "../vms/vm-stats.ts";
import type { VmTable } from "../vms/vm-table.ts";

const REQUEST_SECONDS = [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600];
const TASK_SECONDS = [0.1, 0.5, 2, 10, 60, 300, 1800, 7200, 86_400];

/** What the engine counts, as Prometheus reads it. */
export class EngineMetrics {
  /** For the gauges of other parts */
  readonly registry = new Registry();
  readonly #vms: VmTable;
  readonly #meter: VmMeter;
  readonly #requests: Counter<"method" | "route" | "status">;
  readonly #durations: Histogram<"route">;

  constructor(vms: VmTable, tasks: Tasks, meter: VmMeter, egress: VmEgress) {
    this.#vms = vms;
    this.#meter = meter;
    const registers = [this.registry];
    this.#requests = new Counter({
      name: "ephemera_http_requests_total",
      help: "Requests answered",
      labelNames: ["method", "route", "status"],
      registers,
    });
    this.#durations = new Histogram({
      name: "ephemera_http_request_duration_seconds",
      help: "Time from a request to the end of its answer",
      labelNames: ["route"],
      buckets: REQUEST_SECONDS,
      registers,
    });
    this.#addVmGauges();
    this.#addTaskMetrics(tasks);
    this.#addEgressMetrics(egress);
  }

  countRequest(
    { method, status, duration_ms }: { method: string; status: number; duration_ms: number },
    route: string,
  ): void {
    this.#requests.inc({ method, route, status: String(status) });
    this.#durations.observe({ route }, duration_ms / 1000);
  }

  measureVms(): VmStats[] {
    const running = this.#vms.list().filter((vm) => vm.isRunning);
    return running.map((vm) => this.#meter.measure(vm));
  }

  #addVmGauges(): void {
    const vms = this.#vms;
    const registers = [this.registry];
    new Gauge({
      name: "ephemera_vms",
      help: "VMs by state",
      labelNames: ["state"],
      registers,
      collect() {
        this.reset();
        for (const state of ["running", "stopped", "dead"]) this.set({ state }, 0);
        for (const vm of vms.list()) this.inc({ state: vm.record.state });
      },
    });
    new Gauge({
      name: "ephemera_vm_memory_bytes",
      help: "Memory of a VM that is its own",
      labelNames: ["vm_id"],
      registers,
      collect() {
        this.reset();
        for (const vm of vms.list().filter(({ isRunning }) => isRunning))
          this.set({ vm_id: vm.id }, vm.machine.usage().memoryBytes);
      },
    });
  }

  #addTaskMetrics(tasks: Tasks): void {
    const registers = [this.registry];
    const ended = new Counter({
      name: "ephemera_tasks_total",
      help: "Tasks that ended",
      labelNames: ["result"],
      registers,
    });
    const durations = new Histogram({
      name: "ephemera_task_duration_seconds",
      help: "Time a task took",
      buckets: TASK_SECONDS,
      registers,
    });
    tasks.onEnd((_vm, isFailed, durationMs) => {
      ended.inc({ result: isFailed ? "error" : "ok" });
      durations.observe(durationMs / 1000);
    });
  }

  #addEgressMetrics(egress: VmEgress): void {
    const registers = [this.registry];
    const passages = new Counter({
      name: "ephemera_egress_total",
      help: "What guests asked their proxy for, when it was over",
      labelNames: ["verdict", "reason"],
      registers,
    });
    egress.onVerdict = (verdict, reason) => passages.inc({ verdict, reason });
    new Gauge({
      name: "ephemera_egress_connections",
      help: "Connections of guests to their proxy",
      registers,
      collect() {
        this.set(egress.openConnections);
      },
    });
  }
}
