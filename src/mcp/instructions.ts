/** Many clients show this to the model on every turn: four sentences at most. */
export const INSTRUCTIONS =
  "Gives you private Linux VMs to run commands in. " +
  "Call open_session once, keep its session_id, and pass it to run and write_file; files stay between calls. " +
  "A non-zero exit_code or timed_out is a result to read, while an error says what to do next. " +
  "Call close when done.";
