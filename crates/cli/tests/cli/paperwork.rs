//! What the command writes about itself: completions, manual pages, the config file's schema.

use crate::common::{Folder, says};
use std::process::Command;

/// The subcommands, as the help lists them.
fn subcommands(folder: &Folder) -> Vec<String> {
    let help = folder.run(["--help"]).exits(0).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let words = listed.take_while(|line| !line.is_empty()).filter_map(|line| {
        // A line that goes on with the help of the one before is indented further.
        let word = line.strip_prefix("  ")?.split(' ').next()?;
        (!word.is_empty() && word != "help").then(|| word.to_owned())
    });
    words.collect()
}

#[test]
fn completions_know_every_subcommand_in_every_shell() {
    let folder = Folder::new();
    let words = subcommands(&folder);
    assert!(words.len() >= 11, "{words:?}");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = folder.run(["completions", shell]).exits(0).stdout;
        for word in &words {
            assert!(script.contains(word), "{shell}: {word}");
        }
        says(&script, &["argwhy", "regularization", "length-scales"]);
    }
    says(&folder.refused(["completions", "tcsh"]), &["tcsh", "bash", "powershell"]);
}

/// The script completes, where there is a bash to ask.
#[test]
fn bash_accepts_its_completions_and_completes() {
    let folder = Folder::new();
    folder.write("argwhy.bash", folder.run(["completions", "bash"]).exits(0).stdout);
    let asked = "source ./argwhy.bash && COMP_WORDS=(argwhy ins) COMP_CWORD=1 && \
                 _argwhy argwhy ins argwhy && echo \"${COMPREPLY[@]}\"";
    for (flags, expected) in [(vec!["-n", "argwhy.bash"], ""), (vec!["-c", asked], "inspect\n")] {
        let mut bash = Command::new("bash");
        let Ok(output) = bash.args(flags).current_dir(folder.path("")).output() else {
            return; // No bash on this machine.
        };
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{stderr}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let folder = Folder::new();
    let ran = folder.run(["man", "share/man1"]).exits(0);
    assert_eq!(ran.stdout, "");
    let words = subcommands(&folder);
    for word in &words {
        let page = folder.text(&format!("share/man1/argwhy-{word}.1"));
        says(&page, &[&format!("argwhy\\-{word}"), ".SH SYNOPSIS"]);
    }
    says(&folder.text("share/man1/argwhy.1"), &["argwhy\\-fit(1)", ".SH SUBCOMMANDS"]);
    let fit = folder.text("share/man1/argwhy-fit.1");
    let synopsis = fit.split(".SH ").find(|section| section.starts_with("SYNOPSIS")).unwrap();
    says(synopsis, &["fit", "[OPTIONS]", "<DATA>"]);
    assert!(synopsis.len() < 200, "{synopsis}");
    let written = std::fs::read_dir(folder.path("share/man1")).unwrap().count();
    assert_eq!(written, words.len() + 1);
    says(&ran.stderr, &[&format!("{written} pages"), "man -l"]);
    assert_eq!(folder.run(["man", "share/man1", "--quiet"]).exits(0).stderr, "");
    let file = folder.write("file", "");
    says(
        &folder.refused(["man", "file"]),
        &["cannot write", file.file_name().unwrap().to_str().unwrap()],
    );
}

/// What it admits is judged beside its definition; here, that it is one JSON object which tells
/// what a config file accepted by `fit` says.
#[test]
fn the_schema_describes_a_config_file_that_fit_takes() {
    let folder = Folder::with_data(30);
    let schema = folder.run(["schema"]).exits(0).json();
    let config = "bounds = [-1, 1]\nregularization = 1e-3\nkernel = \"laplace\"\nquiet = true\n";
    folder.write("fit.toml", config);
    folder.run(["fit", "data.csv", "-o", "m.argwhy", "--config", "fit.toml"]).exits(0);
    let told = &schema["properties"];
    for line in config.lines() {
        let name = line.split(' ').next().unwrap();
        assert!(told[name]["description"].is_string(), "{name}");
    }
    assert_eq!(schema["additionalProperties"], false);
    folder.write("wrong.toml", "regularisation = 1\n");
    assert!(told.get("regularisation").is_none());
    folder.refused(["fit", "data.csv", "-o", "n.argwhy", "--config", "wrong.toml"]);
}
